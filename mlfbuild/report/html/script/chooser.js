/** Shows the image and the model in the URL, if there are several. */
function chooser(changed) {
  const show = (parent, selector, chosen) => {
    const all = [...parent.querySelectorAll(selector)];
    const one = all.find((element) => element === chosen || element.contains(chosen)) || all[0];
    for (const element of all) {
      element.hidden = element !== one;
      const link = document.querySelector(`:is(.chooser, .overview) a[href="#${element.id}"]`);
      if (element === one) link?.setAttribute("aria-current", "true");
      else link?.removeAttribute("aria-current");
      link?.closest("tr")?.classList.toggle("current", element === one);
    }
    return one;
  };
  const choose = () => {
    const chosen = document.getElementById(location.hash.slice(1));
    if (chosen?.id === "images" && document.querySelector(".image[hidden]")) return;  // back to the table
    const image = show(document, "article.image", chosen);
    if (image) show(image, "section.model", chosen);
    changed();
  };
  addEventListener("hashchange", choose);
  choose();
}
