/** A button that switches between light and dark, and stores the choice if the browser allows it. */
function theme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = (value) => {
    try {
      if (value) localStorage.setItem("mlfbuild-theme", value);
      return localStorage.getItem("mlfbuild-theme");
    } catch {
      return null;
    }
  };
  const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const say = () => {
    const other = now() === "dark" ? "light" : "dark";
    button.textContent = other;
    button.setAttribute("aria-label", `${other} colours`);
  };
  const before = remembered();
  if (before === "light" || before === "dark") root.dataset.theme = before;
  button.addEventListener("click", () => {
    root.dataset.theme = now() === "dark" ? "light" : "dark";
    remembered(root.dataset.theme);
    say();
  });
  dark.addEventListener("change", say);
  button.hidden = false;
  say();
}
