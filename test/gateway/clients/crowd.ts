import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ended, messageOf } from '../../../bench/child.ts'
import { quantile } from '../../../bench/rounds.ts'

export interface CrowdOptions {
  readonly clients: number
  /** How many of them never read. */
  readonly stalled: number
  readonly events: number
  /** Of a row of the view that those who never read follow, in bytes. Others follow one with rows of 1 kB. */
  readonly bytes: number
  /** Between two events, in ms. */
  readonly interval: number
  /** `--max-semi-space-size` of the gateway's process, in MB. Default: that of Node. */
  readonly semiSpace?: number | undefined
}

/** What a crowd has shown. */
export interface CrowdResult extends CrowdOptions {
  /** Rows that the reading clients have got: each one exactly once. */
  readonly received: number
  readonly expected: number
  /** Rows that a client which began to read after the last event has got, of those that there are. */
  readonly late_received: number
  /** From append to the client, in ms. */
  readonly p50_ms: number
  readonly p99_ms: number
  /** What the gateway has written for one of those who do not read, and what there was for it, in MB. */
  readonly stalled_taken_mb: number
  readonly stalled_offered_mb: number
  /** Frames with rows that were encoded, for an event, a view and a shape of grants. At most 1, less where frames have several events. */
  readonly encoded_per_event: number
  /** By how much the memory of the gateway's process was more than before the first client, at most, in MB: used after a collection. */
  readonly used_over_idle_mb: number
  /** The same with all clients connected, before the first event. */
  readonly connected_over_idle_mb: number
  /** What V8 has reserved for its heap, and memory outside of it, at most. Most of it is the young generation, whose size V8 chooses. */
  readonly heap_over_idle_mb: number
  readonly rss_over_idle_mb: number
}

/** How long to wait for the last row, in ms. */
const PATIENCE = 60_000

/** The shapes of grants: with and without a field. */
const SHAPES = 2

/** The views that are followed. */
const VIEWS = 2

const MB = 1024 * 1024

/** A gateway with many clients, some of which never read. */
export async function crowd(options: CrowdOptions): Promise<CrowdResult> {
  const { clients, stalled, events, bytes, interval, semiSpace } = options
  const child = fork(fileURLToPath(new URL('crowd-gateway.ts', import.meta.url)), [`${bytes}`], {
    execArgv: [
      '--conditions=rivulet-source',
      '--expose-gc',
      ...(semiSpace === undefined ? [] : [`--max-semi-space-size=${semiSpace}`]),
    ],
  })
  const open: Client[] = []
  try {
    const { port, tokens } = Object(await messageOf(child, 'the gateway', 'listened'))
    const idle = await stateOf(child)
    for (let at = 0; at < clients; at++) {
      const client = new Client(port, tokens[at % SHAPES], at < stalled)
      open.push(client)
      // A listener takes only so many at once.
      await client.connected
    }
    const readers = open.slice(stalled)
    await until(async () => (await stateOf(child)).open === clients)
    await until(() => readers.every((each) => each.isCurrent))
    const connected = await stateOf(child)
    const all = [connected]
    for (let event = 0; event < events; event++) {
      child.send('append')
      await setTimeout(interval)
      if (event % 50 !== 49) continue
      all.push(await stateOf(child))
    }
    await until(() => readers.every(({ rows }) => rows >= events))
    const last = await stateOf(child)
    all.push(last)
    const overIdle = (which: 'used' | 'heap' | 'rss') =>
      rounded((Math.max(...all.map((each) => each[which])) - idle[which]) / MB)
    const taken = readers.reduce((sum, { bytes: read }) => sum + read, 0)
    const [late] = open
    late?.read()
    await until(() => late === undefined || late.rows >= events)
    const latencies = readers.flatMap((each) => each.latencies)
    return {
      ...options,
      received: readers.reduce((sum, { rows }) => sum + rows, 0),
      expected: readers.length * events,
      late_received: late?.rows ?? 0,
      stalled_taken_mb: rounded((last.sent - taken) / stalled / MB),
      stalled_offered_mb: rounded((events * bytes) / MB),
      p50_ms: rounded(quantile(latencies, 0.5)),
      p99_ms: rounded(quantile(latencies, 0.99)),
      encoded_per_event: rounded((last.encoded - connected.encoded) / events / SHAPES / VIEWS),
      used_over_idle_mb: overIdle('used'),
      connected_over_idle_mb: rounded((connected.used - idle.used) / MB),
      heap_over_idle_mb: overIdle('heap'),
      rss_over_idle_mb: overIdle('rss'),
    }
  } finally {
    for (const client of open) client.close()
    child.disconnect()
    await ended(child)
  }
}

/** Why a crowd has failed. */
export function complaintsAbout(result: CrowdResult): string[] {
  return [
    ...(result.received !== result.expected ? [`${result.received} rows came, not ${result.expected}`] : []),
    ...(result.late_received !== result.events
      ? [`a late reader got ${result.late_received} rows of ${result.events}`]
      : []),
    ...(result.stalled_taken_mb > result.stalled_offered_mb * 0.8
      ? [`the buffers of sockets have taken all: offer more than ${result.stalled_offered_mb} MB`]
      : []),
    ...(result.p99_ms >= 250 ? [`p99 is ${result.p99_ms} ms`] : []),
    ...(result.used_over_idle_mb >= 64 ? [`it uses ${result.used_over_idle_mb} MB more than idle`] : []),
    ...(result.encoded_per_event > 1
      ? [`${result.encoded_per_event} frames were encoded for an event, a view and a shape`]
      : []),
  ]
}

/** A client that counts rows in the bytes that it reads, so that it costs less than the gateway. */
class Client {
  readonly #socket: Socket
  readonly connected: Promise<void>
  readonly latencies: number[] = []
  readonly #seen = new Set<string>()
  #rest = ''
  /** Whether it has got all rows that there were when it connected. */
  isCurrent = false

  constructor(port: number, token: string, isStalled: boolean) {
    const body = JSON.stringify({ views: [{ view: isStalled ? 'bulk' : 'events' }] })
    const socket = connect(port, '127.0.0.1')
    this.#socket = socket
    if (isStalled) socket.pause()
    else this.read()
    this.connected = new Promise((resolve, reject) => {
      socket.on('error', reject)
      socket.on('connect', () => {
        socket.write(
          `POST /live/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n` +
            `content-length: ${body.length}\r\n\r\n${body}`,
          () => resolve(),
        )
      })
    })
  }

  /** How much it has read. */
  get bytes(): number {
    return this.#socket.bytesRead
  }

  /** The number of different rows that it has. */
  get rows(): number {
    return this.#seen.size
  }

  read(): void {
    this.#socket.setEncoding('latin1').on('data', (text: string) => this.#take(text))
    this.#socket.resume()
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(text: string): void {
    const now = process.hrtime.bigint()
    const all = this.#rest + text
    this.isCurrent ||= all.includes('event: current')
    let end = 0
    for (const found of all.matchAll(/\["(\d+)",\{"at":"(\d+)"/g)) {
      const [row, key = '', at = ''] = found
      end = found.index + row.length
      if (this.#seen.has(key)) throw new Error(`the row ${key} came twice`)
      this.#seen.add(key)
      this.latencies.push(Number(now - BigInt(at)) / 1e6)
    }
    this.#rest = all.slice(Math.max(end, all.length - 100))
  }
}

/** What the gateway's process says of itself: memory in bytes after a collection, counters, and the open connections. */
type GatewayState = Record<'used' | 'heap' | 'rss' | 'encoded' | 'sent' | 'open', number>

async function stateOf(child: ChildProcess): Promise<GatewayState> {
  child.send('state')
  const { used, heap, rss, encoded, sent, open } = Object(await messageOf(child, 'the gateway', 'answered'))
  return {
    used: Number(used),
    heap: Number(heap),
    rss: Number(rss),
    encoded: Number(encoded),
    sent: Number(sent),
    open: Number(open),
  }
}

/** Resolves once the condition holds, or after a while. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE
  while (!(await condition()) && performance.now() < deadline) await setTimeout(10)
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}
