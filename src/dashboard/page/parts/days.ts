/** Items of one day. */
export interface Day<Item> {
  /** Equal for the days of one date. */
  readonly key: string
  /** The time of the day's first item, in Unix ms. */
  readonly at: number
  readonly items: readonly Item[]
}

/** Groups items by the day of their time, in their given order. Adjacent items of one date form a day. */
export function groupByDay<Item>(
  items: readonly Item[],
  timeOf: (item: Item) => number,
  dayKey: (at: number) => string,
): Day<Item>[] {
  const days: { key: string; at: number; items: Item[] }[] = []
  for (const item of items) {
    const at = timeOf(item)
    const key = dayKey(at)
    const last = days.at(-1)
    if (last?.key === key) last.items.push(item)
    else days.push({ key, at, items: [item] })
  }
  return days
}
