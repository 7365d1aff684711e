export function title(page) {
  return page.title.trim() || page.slug;
}

export function link(page) {
  return `[${title(page)}](/${page.slug})`;
}
