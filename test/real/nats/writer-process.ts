/** Writes an upstream stream to a log. It sends the positions that it reaches, and what became of it in the end. */
import { natsStore } from '../../../src/log/nats/index.ts'
import { write } from './writer.ts'
import type { Upstream, Written } from './writer.ts'

/** What it is started with. */
export interface WriterSettings extends Upstream {
  readonly servers: string | readonly string[]
  readonly name: string
  readonly lease: number
  /** It suspends itself soon after this position, once, in the middle of an append. */
  readonly suspendedAt?: number
}

/** What it can be sent: where its upstream stream ends from now on. */
export interface WriterCommand {
  readonly count: number
}

/** What it sends. */
export type WriterMessage = { readonly reached: number } | { readonly written: Written }

const {
  servers,
  name,
  lease,
  suspendedAt = Infinity,
  ...settings
}: WriterSettings = JSON.parse(process.argv[2] ?? '')
const upstream = { ...settings }
process.on('message', ({ count }: WriterCommand) => (upstream.count = count))
const log = natsStore({ servers, name, lease })
const send = (message: WriterMessage) => process.send?.(message)
let isSuspended = false
const written = await write(log, upstream, (reached) => {
  send({ reached })
  if (reached < suspendedAt || isSuspended) return
  isSuspended = true
  setTimeout(() => process.kill(process.pid, 'SIGSTOP'), 1)
})
await log.close()
send({ written })
process.disconnect()
