import type { Entry, EventLog } from 'rivulet/log'

/** All entries of a log. */
export async function entriesOf(log: EventLog): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  let position = await log.positionAt('start')
  for (;;) {
    const page = await log.read(position, { limit: 1_000 })
    entries.push(...page.entries)
    position = page.position
    if (page.isEnd) return entries
  }
}
