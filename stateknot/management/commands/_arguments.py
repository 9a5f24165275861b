"""Kinds of command line arguments that several commands take.

Owns their range checks, so that a wrong value is a usage error (exit code 2), and the
form in which a command shows its examples.
"""

from __future__ import annotations

import argparse


def seconds(text: str) -> float:
    """Parse a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def count(text: str) -> int:
    """Parse a whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def port(text: str) -> int:
    """Parse the number of a TCP port."""
    number = count(text)
    if not 0 < number < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to 65535")
    return number


def show_examples(parser: argparse.ArgumentParser, text: str) -> None:
    """Print `text` below the help of a command, line by line as it is written."""
    parser.epilog = text
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Declare what every command that runs a worker takes."""
    parser.add_argument(
        "--workers",
        type=count,
        default=0,
        help="Worker processes; 0 (the default) takes the setting of Q_CLUSTER.",
    )
    parser.add_argument(
        "--grace",
        type=seconds,
        default=30.0,
        help="Seconds that running nodes get to finish on SIGTERM (default 30).",
    )
