// Elements whose own text has less contrast with what lies behind it than WCAG's 4.5 (AA).
(() => {
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((v, i) => v * a + below[i] * (1 - a));
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour.startsWith("rgb") && (rgb(colour)[3] ?? 1) > 0) layers.push(rgb(colour));
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const low = [];
  for (const e of document.body.querySelectorAll("*:not(svg *):not(script)")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
    const back = behind(e);
    const [a, b] = [light(over(rgb(getComputedStyle(e).color), back)), light(back)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push(`${contrast.toFixed(2)} ${e.outerHTML.slice(0, 90)}`);
  }
  return low.slice(0, 5);
})()
