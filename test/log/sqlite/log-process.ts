/**
 * Opens the log in a file and runs the calls that it is sent, one message each. At a commit of an SQLite transaction it sends
 * itself the signal of the last `signalAtCommit`.
 */
import { flushCompileCache } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from '../../../src/log/event-log/open-log.ts'
import { SqliteLogStore } from '../../../src/log/sqlite/store.ts'
import { detections, readAll } from './events.ts'

/** A call and its number. */
export interface Call {
  readonly id: number
  readonly method: keyof typeof methods
  readonly args: readonly unknown[]
}

/** The result of a call. */
export interface Result {
  readonly id: number
  readonly value?: unknown
  readonly error?: { readonly name: string; readonly message: string }
}

// It may be killed before its end, where Node would store this.
flushCompileCache()

let signal: NodeJS.Signals | undefined

class Connection extends DatabaseSync {
  override exec(sql: string): void {
    if (sql === 'COMMIT' && this.isWriting && signal !== undefined) process.kill(process.pid, signal)
    super.exec(sql)
    this.isWriting = sql === 'BEGIN IMMEDIATE'
  }

  private isWriting = false
}

const [file = ''] = process.argv.slice(2)
const log = new SqliteLogStore(file, {
  owner: `test process ${process.pid}`,
  clock: Date.now,
  connect: (path) => new Connection(path, { timeout: 0 }),
})

const methods = {
  claim: (name: string) => log.claim(name),
  append: (...args: Parameters<typeof log.append>) => log.append(args[0]),
  /** Claims the stream `s`, appends these detections and returns the fence. */
  appendDetections: async (first: number, last: number) => {
    const fence = await log.claim('s')
    const [expect = null] = await log.streamPositions(['s'])
    await log.append([{ fence, expect, position: String(last), entries: detections(first, last) }])
    return fence
  },
  /** Claims the stream `s` once it is free, appends a detection after what is there, and gives it up. */
  appendNext: async () => {
    const fence = await log.claim('s', { wait: new AbortController().signal })
    const [expect = null] = await log.streamPositions(['s'])
    const next = Number(expect ?? 0) + 1
    await log.append([{ fence, expect, position: String(next), entries: detections(next, next) }])
    await log.release(fence)
    return next
  },
  /** Appends these invoices, each in a call of its own. Returns how many were new. */
  appendInvoices: async (first: number, last: number) => {
    const opened = await openLog(log)
    let added = 0
    for (let n = first; n <= last; n++) {
      const { entries } = await opened.append({
        id: `${n}`,
        source: '/invoices',
        type: 'invoice.sent',
        data: n,
      })
      added += entries
    }
    return added
  },
  commit: (...args: Parameters<typeof log.commit>) => log.commit(...args),
  readAll: () => readAll(log),
  positionAt: (...args: Parameters<typeof log.positionAt>) => log.positionAt(...args),
  /** Resolves with the Unix time in ms at which it noticed an entry. */
  wait: async (after: string) => {
    await log.wait(after, new AbortController().signal)
    return performance.timeOrigin + performance.now()
  },
  /** Runs a process that counts the entries, and appends each count. */
  count: async () => {
    const opened = await openLog(log)
    opened.process('counts', {
      version: 1,
      key: (entry) => entry.source,
      init: () => 0,
      event: (seen, _entry, context) => {
        context.set(seen + 1)
        context.append({ type: 'unknown', data: seen + 1 })
      },
    })
  },
  signalAtCommit: async (name: NodeJS.Signals) => {
    signal = name
  },
} satisfies Record<string, (...args: never[]) => Promise<unknown>>

process.on('message', (call: Call) => {
  const run: (...args: never[]) => Promise<unknown> = methods[call.method]
  const reply = (result: Result) => process.send?.(result)
  run(...(call.args as never[])).then(
    (value) => reply({ id: call.id, value }),
    ({ name, message }: Error) => reply({ id: call.id, error: { name, message } }),
  )
})
