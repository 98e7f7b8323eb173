// Colors, before the page is drawn; a script of its own, since the policy forbids inline scripts.
try { document.documentElement.dataset.theme = localStorage.theme ?? ""; } catch { /* storage is disabled */ }
