import { progressOf } from '../../../src/log/process/progress.ts'
import type { Entry, LogStore, Position } from '../../../src/log/store/contract.ts'
import type { StoredDeadLetter } from '../../../src/log/store/dead-letter-store.ts'
import type { PendingDelivery } from '../../../src/log/store/inbox-store.ts'
import { readAll } from '../conformance/fixture.ts'

/** All that a log has of these names, by what its callers see. Positions are replaced by what is read after them. */
export async function contentOf(log: LogStore, streams: readonly string[], readers: readonly string[]) {
  const entries = await readAll(log)
  return {
    entries: entries.map(withoutPosition),
    streams: await log.streamPositions(streams),
    readers: await Promise.all(readers.map((name) => readerOf(log, name))),
    inbox: (await log.inbox.pending(null, 1_000)).map(withoutPlace),
    start: await placeOf(log, await log.positionAt('start')),
    end: await placeOf(log, await log.positionAt('end')),
    times: await Promise.all(
      entries.map(async ({ recorded }) => placeOf(log, await log.positionAt({ time: recorded }))),
    ),
  }
}

function withoutPosition(entry: Entry) {
  const { position: _, ...event } = entry
  return event
}

function withoutPlace(pending: PendingDelivery) {
  const { place: _, ...delivery } = pending
  return delivery
}

async function readerOf(log: LogStore, name: string) {
  const reader = await log.reader(name)
  const letters = await log.deadLetters.list(name, null, 1_000)
  const { deadLetters: marked } = await log.deadLetters.redeliveries(name, 0, 1_000)
  const checkpoint = reader?.process?.checkpoint
  return {
    name,
    cursor: reader && (await placeOf(log, reader.cursor)),
    acknowledged: reader && (await Promise.all(reader.acknowledged.map((each) => placeOf(log, each)))),
    holdsRetention: reader?.process?.holdsRetention,
    progress: checkpoint === undefined ? undefined : await progressIn(log, name, checkpoint),
    changes: await changesAfter(log, name, await log.processes.start()),
    states: (await log.processes.range(name, { prefix: '', limit: 1_000 })).states,
    timers: await Promise.all(
      (['event', 'recorded'] as const).map((clock) =>
        log.processes.timers(name, { clock, until: Number.MAX_SAFE_INTEGER, limit: 1_000 }),
      ),
    ),
    letters: await Promise.all(letters.map((letter) => letterIn(log, letter))),
    marked: marked.map(({ entry }) => withoutPosition(entry)),
  }
}

async function letterIn(log: LogStore, { entry, ...letter }: StoredDeadLetter) {
  return { ...letter, entry: withoutPosition(entry), place: await placeOf(log, entry.position) }
}

async function progressIn(log: LogStore, name: string, checkpoint: string) {
  const { start, rebuild, within, migration, ...progress } = progressOf(name, checkpoint)
  return {
    ...progress,
    start: await placeOf(log, start),
    rebuild: rebuild && (await placeOf(log, rebuild)),
    within: within && { ...within, position: await placeOf(log, within.position) },
    migration: migration && {
      from: migration.from,
      after: await changesAfter(log, name, migration.after),
      until: await changesAfter(log, name, migration.until),
    },
  }
}

async function changesAfter(log: LogStore, name: string, after: Position) {
  const { changes } = await log.processes.changes(name, after, { limit: 1_000 })
  return changes.map(({ key, state }) => [key, state])
}

/** What is read after a position: whether there is a gap, and the next entry. */
async function placeOf(log: LogStore, position: Position) {
  const first = await log.read(position, { limit: 1 })
  const page = first.gap === undefined ? first : await log.read(first.position, { limit: 1 })
  const [next] = page.entries
  return { isGap: first.gap !== undefined, next: next && [next.source, next.id, next.revision] }
}
