// Texts of the page whose contrast with what lies behind them is below that of WCAG 2, level AA, which is 4.5.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function painted(colours) {
  canvas.clearRect(0, 0, 1, 1);
  for (const colour of colours) {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
  }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

// Relative luminance, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
function luminance(colour) {
  const linear = colour.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function behind(element) {
  const found = [];
  for (let at = element; at; at = at.parentElement) {
    const box = at.querySelector(":scope > rect");
    const plain = getComputedStyle(at).backgroundColor;
    found.unshift(...(at instanceof SVGElement && box ? [plain, getComputedStyle(box).fill] : [plain]));
  }
  return found;
}

function shown(element) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return own && !element.closest("script") && element.checkVisibility({ visibilityProperty: true });
}

const texts = [...document.querySelectorAll("body *")].filter(shown);
const low = [];
for (const element of texts) {
  const ground = behind(element);
  const style = getComputedStyle(element);
  const [one, other] = [[], [element instanceof SVGElement ? style.fill : style.color]]
    .map((more) => luminance(painted([...ground, ...more])) + 0.05);
  const ratio = Math.max(one, other) / Math.min(one, other);
  if (ratio < 4.5) low.push(`${element.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
}
return { low: [...new Set(low)], seen: texts.length };
