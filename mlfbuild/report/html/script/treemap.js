/** A treemap of sizes: owners contain operators, and operators contain symbols; areas are in proportion to bytes. */
const HEAD = 18;
/** Narrower boxes have no frame, so that their content is visible. */
const BARE = 36;

/** Squarified layout (Bruls, Huizing, van Wijk, 2000): rows along the shorter side, with tiles as square as possible. */
function squarify(items, box) {
  const placed = [];
  let { x, y, width, height } = box;
  let left = items.reduce((sum, item) => sum + item.size, 0);
  let start = 0;
  while (start < items.length && left > 0) {
    const short = Math.min(width, height);
    const scale = (width * height) / left;
    let end = start;
    let sum = 0;
    let worst = Infinity;
    while (end < items.length) {
      const next = sum + items[end].size;
      const thick = (next * scale) / short;
      const ratio = (size) => Math.max((size * scale) / thick / thick, (thick * thick) / (size * scale));
      const now = Math.max(ratio(items[start].size), ratio(items[end].size));
      if (now > worst) break;
      worst = now;
      sum = next;
      end += 1;
    }
    const thick = (sum * scale) / short;
    let along = width >= height ? y : x;
    for (const item of items.slice(start, end)) {
      const long = (item.size * scale) / thick;
      placed.push(width >= height
        ? { item, x, y: along, width: thick, height: long }
        : { item, x: along, y, width: long, height: thick });
      along += long;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
    left -= sum;
    start = end;
  }
  return placed;
}

function ordered(node) {
  return node.children.filter((child) => child.size > 0).sort((a, b) => b.size - a.size);
}

function place(element, at) {
  element.style.left = `${at.x}px`;
  element.style.top = `${at.y}px`;
  element.style.width = `${Math.max(0, at.width - 1)}px`;
  element.style.height = `${Math.max(0, at.height - 1)}px`;
}

function bytesText(node) {
  const lines = [`${node.size.toLocaleString("en")} bytes`];
  if (node.old !== undefined) {
    const more = node.size - node.old;
    const sign = more > 0 ? "+" : more < 0 ? "−" : "";
    lines.push(more ? `${sign}${Math.abs(more).toLocaleString("en")} bytes since the other report` : "unchanged");
  }
  return lines;
}

class Treemap {
  constructor(element, trees) {
    this.element = element;
    this.trees = trees;
    this.memory = "flash";
    this.changes = false;
    this.zoomed = null;
    this.build();
    this.draw();
    new ResizeObserver(() => this.draw()).observe(this.tiles);
  }

  get tree() {
    return this.trees[this.memory];
  }

  build() {
    const choices = document.createElement("div");
    choices.className = "choices";
    choices.append(this.group([["flash", "Flash"], ["ram", "RAM"]], () => this.memory, (value) => {
      this.memory = value;
      this.zoomed = null;
    }));
    if (this.trees.flash.children.some((child) => child.old !== undefined)) {
      choices.append(this.group([[false, "by kind"], [true, "by change"]], () => this.changes, (value) => {
        this.changes = value;
      }));
    }
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    this.back = document.createElement("button");
    this.back.type = "button";
    this.back.className = "crumb";
    this.back.addEventListener("click", () => this.zoom(null));
    choices.append(this.legend, this.back);
    this.tiles = document.createElement("div");
    this.tiles.className = "tiles marks";
    this.tiles.setAttribute("role", "group");
    this.element.append(choices, this.tiles);
    this.element.hidden = false;
  }

  group(options, get, set) {
    const group = document.createElement("div");
    group.className = "group";
    const buttons = options.map(([value, text]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", () => {
        set(value);
        press();
        this.draw();
      });
      return [value, button];
    });
    const press = () => buttons.forEach(([value, button]) => button.setAttribute("aria-pressed", String(get() === value)));
    press();
    group.append(...buttons.map(([, button]) => button));
    return group;
  }

  zoom(owner) {
    this.zoomed = owner;
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.tiles;
    if (!width) return;
    const owner = this.tree.children.find((child) => child.name === this.zoomed);
    this.back.hidden = !owner;
    this.back.textContent = `← whole image (${owner ? owner.name : ""} only)`;
    this.tiles.setAttribute("aria-label", `${this.memory} by owner`);
    this.tiles.replaceChildren();
    this.kinds = new Set();
    const root = owner ? { children: [owner] } : this.tree;
    this.fill(this.tiles, root, { x: 0, y: 0, width, height }, []);
    this.explain();
    firstStops(this.element);
  }

  explain() {
    const entries = this.changes
      ? [["t-more", "grew"], ["t-less", "shrank"], ["t-same", "as before"]]
      : [...this.kinds].map((kind) => [`k-${kind}`, kind]);
    this.legend.replaceChildren(...entries.map(([name, text]) => {
      const entry = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.className = `swatch ${name}`;
      entry.append(swatch, text);
      return entry;
    }));
  }

  fill(parent, node, box, above) {
    for (const at of squarify(ordered(node), box)) {
      if (at.width < 2 || at.height < 2) continue;
      parent.append(at.item.children ? this.frame(at, above) : this.tile(at, above));
    }
  }

  frame(at, above) {
    const frame = document.createElement("div");
    const bare = Math.min(at.width, at.height) < BARE;
    frame.className = `frame${above.length ? " inner" : ""}${bare ? " bare" : ""}`;
    place(frame, at);
    const names = [...above, at.item.name];
    const headed = at.height > 2 * HEAD && at.width > 34;
    if (headed) {
      const head = document.createElement("button");
      head.type = "button";
      head.textContent = `${at.item.name}  ${at.item.size.toLocaleString("en")}`;
      head.tabIndex = above.length ? -1 : 0;
      head.addEventListener("click", () => this.zoom(this.zoomed ? null : names[0]));
      words.set(head, [names.join(" › "), ...bytesText(at.item)].join("\n"));
      head.classList.add("column");
      frame.append(head);
    }
    const top = headed ? HEAD : 0;
    const inside = bare
      ? { x: 0, y: 0, width: at.width, height: at.height }
      : { x: 1, y: top, width: at.width - 4, height: at.height - top - 3 };
    this.fill(frame, at.item, inside, names);
    return frame;
  }

  tile(at, above) {
    const { item } = at;
    const tile = document.createElement("div");
    this.kinds.add(item.kind);
    const change = Math.sign(item.size - (item.old ?? item.size));
    tile.className = `tile mark ${this.changes ? { 1: "t-more", 0: "t-same", "-1": "t-less" }[change] : `k-${item.kind}`}`;
    place(tile, at);
    const text = [item.name, above.join(" › "), item.kind, ...bytesText(item)].join("\n");
    words.set(tile, text);
    tile.setAttribute("role", "img");
    tile.setAttribute("aria-label", text.replaceAll("\n", ", "));
    tile.setAttribute("tabindex", "-1");
    if (at.width > 44 && at.height > 17) {
      tile.append(item.label ?? item.name);
      if (at.height > 34) {
        const size = document.createElement("small");
        size.textContent = item.size.toLocaleString("en");
        tile.append(size);
      }
    }
    return tile;
  }
}

function treemaps() {
  const trees = JSON.parse(document.getElementById("data").textContent);
  for (const element of document.querySelectorAll(".treemap")) new Treemap(element, trees[element.dataset.image]);
}
