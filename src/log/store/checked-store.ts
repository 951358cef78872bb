import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkMethods, checkSignal, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { macrotask } from '../../protocol/macrotask.ts'
import { LogValueError } from '../errors.ts'
import { commitBytes } from './commit-size.ts'
import { MAX_APPEND_DONE, MAX_APPEND_ENTRIES, MAX_APPEND_LENGTH, MAX_COMMIT_BYTES } from './contract.ts'
import type { Commit, LogStore, NewEntry } from './contract.ts'
import { inFrontOf } from './in-front-of.ts'

/** A store. The first mistake of many is to give a path. */
export function checkStore(argument: string, store: unknown): void {
  checkMethods(argument, store, 'a store, such as sqliteStore(file) or memoryStore()', ['positionAt'])
}

/**
 * Puts the checks of arguments in front of a store: its calls reject with an ArgumentError for one that cannot be right, and with a
 * LogValueError for an append or a commit that is too large, and the store gets only valid ones. Three promises that all stores make are
 * kept here as well. Later changes of a commit by the caller have no effect. A wait rejects if its signal is aborted in the moment in which
 * it ends. Each page that is read leaves a turn of the event loop to other work.
 */
export function checkedStore(store: LogStore): LogStore {
  const { deadLetters, inbox, processes, retention, sharing } = store
  let partitionCount: number | undefined
  const checkPartition = async (partition: number | undefined) => {
    if (partition === undefined) return
    // It never changes.
    partitionCount ??= (await sharing.partitions()).count
    checkInteger('partition', partition, 0, partitionCount - 1)
  }
  return inFrontOf(store, {
    async claim(name, options) {
      checkText('name', name)
      if (options?.wait !== undefined) checkSignal('wait', options.wait)
      return store.claim(name, options)
    },
    async append(appends, done = []) {
      const refused = (problem: string) => new LogValueError(store.name, 'an append', problem)
      if (done.length > MAX_APPEND_DONE) {
        throw refused(
          `its ${done.length} deliveries that are done are more than ${MAX_APPEND_DONE}. Append them in parts`,
        )
      }
      if (done.length > 0 && appends.length === 0)
        throw refused('it has deliveries that are done, and no fence')
      checkEntries(
        store.name,
        appends.flatMap(({ entries }) => entries),
      )
      return store.append(appends, done)
    },
    async commit(fence, given) {
      const commit = copied(given)
      checkEntries(store.name, commit.entries ?? [])
      const bytes = commitBytes(commit)
      if (bytes > MAX_COMMIT_BYTES) {
        const problem = `its ${bytes} bytes are more than ${MAX_COMMIT_BYTES}`
        throw new LogValueError(store.name, `a commit of ${JSON.stringify(fence.name)}`, problem)
      }
      await store.commit(fence, commit)
    },
    async read(after, options) {
      checkInteger('limit', options.limit, 1)
      await checkPartition(options.partition)
      await macrotask()
      return store.read(after, options)
    },
    async wait(after, signal, redelivery, partition) {
      await checkPartition(partition)
      await untilAborted(signal, () => store.wait(after, signal, redelivery, partition))
    },
    async positionAt(start) {
      checkStart('start', start)
      return store.positionAt(start)
    },
    deadLetters: inFrontOf(deadLetters, {
      async list(reader, after, limit) {
        checkInteger('limit', limit, 1)
        return deadLetters.list(reader, after, limit)
      },
      async redeliveries(reader, after, limit) {
        checkInteger('limit', limit, 1)
        return deadLetters.redeliveries(reader, after, limit)
      },
    }),
    inbox: inFrontOf(inbox, {
      async put(delivery, json) {
        const { id, timestamp, payload } = delivery
        checkText('delivery.id', id)
        checkInteger('delivery.timestamp', timestamp, 0)
        if (!isObject(payload)) throw new ArgumentError('delivery.payload', 'an object', payload)
        checkText('json', json)
        // A lone surrogate would not survive as UTF-8.
        return inbox.put(delivery, json.isWellFormed() ? json : JSON.stringify(payload))
      },
      async pending(after, limit) {
        checkInteger('limit', limit, 1)
        return inbox.pending(after, limit)
      },
      wait: (after, signal) => untilAborted(signal, () => inbox.wait(after, signal)),
    }),
    processes: inFrontOf(processes, {
      async changes(name, after, options) {
        checkInteger('limit', options.limit, 1)
        await macrotask()
        return processes.changes(name, after, options)
      },
      async range(name, options) {
        checkInteger('limit', options.limit, 1)
        await macrotask()
        return processes.range(name, options)
      },
      wait: (name, after, signal) => untilAborted(signal, () => processes.wait(name, after, signal)),
    }),
    retention: inFrontOf(retention, {
      async trim(limit) {
        checkInteger('limit', limit.limit, 1)
        return retention.trim(limit)
      },
    }),
  })
}

function checkEntries(log: string, entries: readonly NewEntry[]): void {
  const length = entries.reduce((sum, { json }) => sum + json.length, 0)
  if (entries.length <= MAX_APPEND_ENTRIES && (length <= MAX_APPEND_LENGTH || entries.length === 1)) return
  const limits = `${MAX_APPEND_ENTRIES} entries and ${MAX_APPEND_LENGTH} characters`
  const problem = `its ${entries.length} entries of ${length} characters are more than ${limits}. Append them in parts`
  throw new LogValueError(log, 'an append', problem)
}

function copied({ acknowledged, deadLetters, redelivered, entries, process, ...rest }: Commit): Commit {
  return {
    ...rest,
    acknowledged: [...acknowledged],
    ...(deadLetters && { deadLetters: structuredClone(deadLetters) }),
    ...(redelivered && { redelivered: [...redelivered] }),
    ...(entries && { entries: [...entries] }),
    ...(process && { process: { ...process, state: [...process.state], timers: [...process.timers] } }),
  }
}

/** Throws an ArgumentError for anything but a `StartAt`. */
export function checkStart(argument: string, start: unknown): void {
  const isTime = isObject(start) && Number.isFinite(start['time'])
  if (!isTime && start !== 'start' && start !== 'end') {
    throw new ArgumentError(argument, '"start", "end" or { time: Unix ms }', start)
  }
}

/** Rejects with the signal's reason even if the wait has just ended. */
async function untilAborted(signal: AbortSignal, wait: () => Promise<void>): Promise<void> {
  checkSignal('signal', signal)
  signal.throwIfAborted()
  await wait()
  signal.throwIfAborted()
}
