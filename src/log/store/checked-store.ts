import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkSignal, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { macrotask } from '../macrotask.ts'
import type { LogStore } from './contract.ts'
import { inFrontOf } from './in-front-of.ts'

/**
 * Puts the checks of arguments in front of a store: its calls reject with an ArgumentError for one that cannot be right, and the store
 * gets only valid ones. Two promises that all stores make are kept here as well: a wait rejects if its signal is aborted in the moment in
 * which it ends, and each page that is read leaves a turn of the event loop to other work.
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
