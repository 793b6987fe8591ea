// Says what is wrong with how a page looks. Returns {faults: [text], texts: number of texts whose contrast was asked}.
() => {
  const faults = [], width = document.documentElement.clientWidth;
  const named = (element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 60);
    return `<${element.tagName.toLowerCase()}${element.className && element.className.baseVal === undefined ? "." + element.className : ""}> "${text}"`;
  };
  const add = (kind, element, more) => faults.push(`${kind}: ${named(element)} ${more}`);
  const parsed = (text) => {
    const numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
    if (text.startsWith("color(srgb")) { return [...numbers.slice(0, 3).map((each) => each * 255), numbers[3] ?? 1]; }
    return text.startsWith("rgb") ? [numbers[0], numbers[1], numbers[2], numbers[3] ?? 1] : null;
  };
  const over = (top, below) => top.slice(0, 3).map((each, at) => each * top[3] + below[at] * (1 - top[3])).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((each) => each / 255).map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [a, b] = [luminance(one), luminance(other)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const canvas = matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark") ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const paper = each.tagName === "svg" && each.querySelector(":scope > rect:first-of-type");
      if (paper && paper.getAttribute("width") === each.viewBox.baseVal.width.toString()) { layers.push(parsed(getComputedStyle(paper).fill)); break; }
      const colour = parsed(getComputedStyle(each).backgroundColor);
      if (colour && colour[3] > 0) { layers.push(colour); if (colour[3] === 1) { break; } }
    }
    return layers.reverse().reduce((below, top) => over(top, below), canvas);
  };
  const scroller = (element) => {
    for (let each = element.parentElement; each && each !== document.body; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (/auto|scroll/.test(style.overflowX) && each.scrollWidth > each.clientWidth) { return each; }
    }
    return null;
  };
  if (document.documentElement.scrollWidth > width) {
    faults.push(`the page scrolls sideways: ${document.documentElement.scrollWidth} px wide in ${width}`);
  }
  const screens = document.documentElement.scrollHeight / innerHeight;
  if (screens > 12) { faults.push(`the page is ${screens.toFixed(1)} screens tall`); }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Map();
  let texts = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || /^(script|style|title|option|text-path)$/i.test(element.tagName)) { continue; }
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width || !box.height || !element.checkVisibility()) { continue; }
    const style = getComputedStyle(element), inSvg = element.ownerSVGElement;
    texts += 1;
    const colour = parsed(inSvg ? style.fill : style.color);
    const key = `${colour} ${style.opacity} ${ground(element)}`;
    if (colour && !seen.has(key)) {
      const below = ground(element), found = contrast(over(colour, below), below);
      seen.set(key, found);
      if (found < 4.5) { add("contrast", element, `is ${found.toFixed(2)}: ${colour} on ${below.map(Math.round)}`); }
    }
    if (inSvg) {
      const frame = inSvg.getBoundingClientRect(), scale = frame.width / (inSvg.viewBox.baseVal.width || frame.width);
      if (parseFloat(style.fontSize) * scale < 9) { add("small", element, `is ${(parseFloat(style.fontSize) * scale).toFixed(1)} px`); }
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) { add("cut by its picture", element, ""); }
    }
    if (width > 900 && element.closest("td") && /^[\w.]{1,22}$/.test(node.data.trim()) && range.getClientRects().length > 1) { add("broken word", element, ""); }
    if (scroller(element)) {
      if (!inSvg) { add("out of sight beside", element, "in a part that scrolls"); }
    } else if (box.left < -0.5 || box.right > width + 0.5) { add("cut by the screen", element, `ends at ${box.right.toFixed(0)} of ${width}`); }
    for (let each = element; each && each !== document.body; each = each.parentElement) {
      const clip = getComputedStyle(each);
      if (/hidden|clip/.test(clip.overflowX) && !each.ownerSVGElement && each.tagName !== "svg") {
        const frame = each.getBoundingClientRect();
        if (box.right > frame.right + 1 || box.bottom > frame.bottom + 1) { add("cut", element, `by ${named(each)}`); }
      }
    }
  }
  for (const cell of document.querySelectorAll("td, th")) {
    if (!cell.checkVisibility()) { continue; }
    const label = getComputedStyle(cell, "::before").content;
    if (/^"\s*:/.test(label)) { add("label without a name", cell, label); }
    if (cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth) { add("too wide for its cell", cell, `${cell.scrollWidth} in ${cell.clientWidth}`); }
    const words = Math.max(...cell.textContent.trim().split(/[^A-Za-z]+/).map((each) => each.length), 0);
    const line = parseFloat(getComputedStyle(cell).fontSize);
    if (words >= 4 && cell.clientWidth < Math.min(words, 12) * line * 0.4) { add("narrow", cell, `${cell.clientWidth} px`); }
  }
  for (const picture of document.querySelectorAll("section svg")) {
    const paper = ground(picture);
    if (matchMedia("(prefers-color-scheme: dark)").matches && luminance(paper) > 0.4) { faults.push(`a white picture on a dark screen: ${paper}`); }
  }
  for (const plot of document.querySelectorAll("svg.plot")) {
    if (plot.checkVisibility() && plot.getBoundingClientRect().width < 150) { add("small plot", plot, `${plot.getBoundingClientRect().width} px`); }
  }
  for (const table of document.querySelectorAll("table")) {
    const rows = table.querySelectorAll("tbody tr").length, part = table.closest("section, details");
    if (rows > 100 && !(part && part.querySelector("input[type=search]"))) { add("no filter", table, `over ${rows} rows`); }
  }
  for (const box of document.querySelectorAll("input[placeholder]")) {
    if (!box.checkVisibility()) { continue; }
    const below = ground(box), found = contrast(over(parsed(getComputedStyle(box, "::placeholder").color), below), below);
    if (found < 4.5) { add("contrast", box, `of its placeholder is ${found.toFixed(2)}`); }
  }
  return { faults: [...new Set(faults)], texts };
}
