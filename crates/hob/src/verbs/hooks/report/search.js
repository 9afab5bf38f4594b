// The search of a report of hooks: shows the targets whose text has all words of the field, in each
// part of the page. A target is known by its line (data-line). Without it the page shows them all.
'use strict';
{
  const field = document.getElementById('search');
  const found = document.getElementById('found');
  const parts = [...document.querySelectorAll('[data-line]')];
  const folds = [...document.querySelectorAll('.cause, #targets')];
  const texts = new Map();
  for (const part of parts) {
    const cause = part.closest('.cause');
    const text = part.textContent + (cause ? '\n' + cause.firstElementChild.textContent : '');
    const line = part.dataset.line;
    texts.set(line, (texts.get(line) || '') + '\n' + text.toLowerCase());
  }
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const lines = new Set();
    for (const [line, text] of texts) {
      if (words.every((word) => text.includes(word))) lines.add(line);
    }
    for (const part of parts) part.hidden = !lines.has(part.dataset.line);
    for (const fold of folds) {
      const has = words.length > 0 && fold.querySelector('[data-line]:not([hidden])') !== null;
      if (fold.matches('.cause')) fold.hidden = words.length > 0 && !has;
      // Only what the search has opened is closed by it.
      if (has && !fold.open) fold.dataset.opened = '';
      if (!has && fold.dataset.opened !== undefined) fold.open = false;
      if (has) fold.open = true;
      else delete fold.dataset.opened;
    }
    found.textContent = words.length > 0 ? `${lines.size} of ${texts.size} targets shown here` : '';
  };
  field.addEventListener('input', show);
  field.parentElement.hidden = false;
  // A link may name what is looked for: report.html#find=web-7
  const asked = location.hash.match(/^#find=(.*)$/);
  if (asked) field.value = decodeURIComponent(asked[1]);
  show();
}
