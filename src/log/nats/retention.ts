import { ageLimit } from '../store/log-clock.ts'
import type { RetentionStore, StoreStats } from '../store/retention-store.ts'
import type { JournalHead } from './journal/journal-message.ts'
import type { OpenNatsLog } from './open-log.ts'
import { retryTransient } from './server/retry-transient.ts'
import type { Holder } from './entries/trimming.ts'

/** Runs a call of the store, once the log is open. */
type LogCall = <Result>(effect: (log: OpenNatsLog) => Promise<Result>) => Promise<Result>

/** Retention of a log on a NATS server. */
export function natsRetention(call: LogCall): RetentionStore {
  return {
    defaultMaxBytes: 8 * 1024 ** 3,
    // Longer than in other stores, since each check takes several requests.
    interval: 200,
    stats: () => call(statsOf),
    usage: () =>
      call(async (log) => {
        // After each of many appends.
        const { bytes, newest } = await usageOf(log, () => log.reading.aboutNewest())
        return { bytes, walBytes: 0, newest, isTimeCertain: log.times.isCertain }
      }),
    room: () =>
      call(async (log) => {
        const { trimmed, maxBytes } = await log.about.read()
        const [{ bytes, newest }, holders, oldest] = await Promise.all([
          usageOf(log),
          holdersOf(log),
          log.reading.first(trimmed.sequence + 1),
        ])
        const holder = oldest && holders.find(({ cursor }) => cursor < oldest.sequence)
        return {
          bytes,
          walBytes: 0,
          newest,
          isTimeCertain: log.times.isCertain,
          maxBytes,
          neededBy: holder?.name ?? null,
        }
      }),
    trim: (limit) =>
      call(async (log) => {
        const { recordedBefore } = limit
        if (recordedBefore !== undefined) {
          // Mostly there is nothing to delete.
          const { trimmed } = await log.about.read()
          const oldest = await log.reading.first(trimmed.sequence + 1)
          const isOld = (before: number) => oldest !== undefined && oldest.recorded < before
          const before = isOld(recordedBefore) ? ageLimit(recordedBefore, await log.clockChanges()) : 0
          if (!isOld(before)) return { deleted: 0, isDone: true, blockedBy: null }
          return log.trimming.trim({ ...limit, recordedBefore: before }, await holdersOf(log))
        }
        return log.trimming.trim(limit, await holdersOf(log))
      }),
    // A generation of a process that is over leaves nothing but its journal, which its owner makes short.
    clean: () => call(async (log) => !(await log.trimming.trimIdentities())),
    forget: (source) =>
      call(async (log) => {
        const count = await log.forgetting.forget(source)
        log.reading.forget()
        await log.journals.forget(source)
        await log.inbox.forget(source, await log.times.now())
        return count
      }),
    setPaused: (reader, maxBytes) =>
      call(async (log) => {
        await log.about.change((about) => ({ ...about, pausedBy: reader, maxBytes }))
      }),
    remove: (reader, fence) => call((log) => log.journals.readers.remove(reader, fence)),
  }
}

async function statsOf(log: OpenNatsLog): Promise<StoreStats> {
  const about = await log.about.read()
  const { trimmed } = about
  const [usage, heads, owners, inbox, last, oldest] = await Promise.all([
    usageOf(log),
    log.journals.journals.all(),
    log.journals.claims.owners(),
    log.inbox.totals(),
    log.positions.last(),
    log.reading.first(trimmed.sequence + 1),
  ])
  return {
    now: await log.times.now(),
    entries: usage.entries,
    bytes: usage.bytes,
    walBytes: 0,
    oldest: oldest?.recorded ?? null,
    newest: oldest === undefined ? null : usage.newest,
    readers: await Promise.all(
      heads.flatMap(({ reader, ...head }) =>
        reader === null ? [] : [readerStats(log, { ...head, reader }, last, trimmed.sequence, owners)],
      ),
    ),
    streams: heads.flatMap((head) => {
      const { name, position } = head
      return position === null ? [] : [{ name, position, owner: owners(head) }]
    }),
    inbox,
    pausedBy: about.pausedBy,
  }
}

/** Number of messages, and their size in the server's files, in bytes. */
async function usageOf(log: OpenNatsLog, newestOf = () => log.reading.newest()) {
  const { jsm, names } = log.connection
  const [events, state, newest] = await Promise.all([
    retryTransient(log.connection, () => jsm.streams.info(names.events)),
    retryTransient(log.connection, () => jsm.streams.info(names.state)),
    newestOf(),
  ])
  return {
    entries: events.state.messages,
    bytes: events.state.bytes + state.state.bytes,
    newest: newest ?? log.about.current.trimmed.recorded,
  }
}

/** The readers for which retention waits. */
async function holdersOf(log: OpenNatsLog): Promise<readonly Holder[]> {
  const heads = await log.journals.journals.ofReaders()
  return heads
    .filter(({ holdsRetention }) => holdsRetention)
    .flatMap(({ name, reader }) =>
      reader === null ? [] : [{ name, cursor: log.positions.number(reader.cursor) }],
    )
    .toSorted((a, b) => a.cursor - b.cursor)
}

async function readerStats(
  log: OpenNatsLog,
  head: JournalHead & { readonly reader: NonNullable<JournalHead['reader']> },
  last: number,
  trimmed: number,
  owners: (head: JournalHead) => string | null,
): Promise<StoreStats['readers'][number]> {
  const { name, claim, reader, pausedToken, deadLetters, holdsRetention } = head
  const { cursor, acknowledged } = reader
  const from = Math.max(trimmed, log.positions.number(cursor))
  const next = await log.reading.first(from + 1)
  const owner = owners(head)
  return {
    name,
    cursor,
    behind: next === undefined ? 0 : Math.max(0, last - from - acknowledged.length),
    oldestUnacknowledged: next?.recorded ?? null,
    acknowledgedAhead: acknowledged.length,
    deadLetters,
    holdsRetention,
    isPaused: owner !== null && pausedToken === claim.token,
    owner,
  }
}
