/** One of `items` by any number, the last by −1. */
export function chosen<Item>(items: readonly Item[], which: number): Item | undefined {
  return which < 0 ? items.at(which) : items[which % Math.max(1, items.length)]
}

/** The same, taken out. */
export function taken<Item>(items: Item[], which: number): Item | undefined {
  const item = chosen(items, which)
  if (item !== undefined) items.splice(items.indexOf(item), 1)
  return item
}
