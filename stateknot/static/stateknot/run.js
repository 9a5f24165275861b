// Follows a moving run: asks whether it changed, then puts the new parts of its page in
// place of the old. A part in which somebody types or stands is left as it is.
"use strict";
(() => {
    const page = document.querySelector("[data-sk-live]");
    const notice = document.getElementById("sk-notice");
    const parts = (root) => [...root.querySelectorAll("[data-sk-part]")];
    const isTouched = (field) => field.options
        ? [...field.options].some((o) => o.selected !== o.defaultSelected)
        : field.value !== field.defaultValue;
    const isBusy = (part) => part.contains(document.activeElement) ||
        [...part.querySelectorAll("[name]:not([type=hidden])")].some(isTouched);

    function show(fresh) {
        let place = notice;
        const gone = new Set(parts(page));
        notice.hidden = true;
        for (const part of parts(fresh)) {
            const old = document.getElementById(part.id);
            gone.delete(old);
            for (const box of old?.querySelectorAll("details[id]") ?? []) {
                const same = part.querySelector("#" + CSS.escape(box.id));
                if (same) same.open = box.open;
            }
            if (!old) place.after(part);
            else if (isBusy(old)) notice.hidden = false;
            else old.replaceWith(part);
            place = document.getElementById(part.id);
        }
        for (const old of gone) isBusy(old) ? notice.hidden = false : old.remove();
    }

    async function follow(seen) {
        try {
            const answer = await fetch(page.dataset.skLive, { headers: { "If-None-Match": seen } });
            if (answer.status !== 304) {
                if (!answer.ok) return;
                const { moving } = await answer.json();
                const html = await (await fetch(location.href)).text();
                show(new DOMParser().parseFromString(html, "text/html"));
                if (!moving) return;
                seen = answer.headers.get("ETag");
            }
        } catch { /* the server is away: ask again */ }
        setTimeout(follow, document.hidden ? 10000 : 1500, seen);
    }
    if (page?.dataset.skSeen) follow(page.dataset.skSeen);

    const text = document.querySelector("[data-sk-edit] textarea");
    text?.addEventListener("input", () => {
        let told = "";
        try { JSON.parse(text.value); } catch (error) { told = error.message; }
        document.getElementById("sk-check").textContent = told;
    });
})();
