import { createServer, connect } from 'node:net'
import type { Server, Socket } from 'node:net'
import { createServer as createHttpServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { RunInput, TaskGroupStatus, TaskRun } from 'rivulet'
import { answer, openStream, queryOf, sse } from '../../support/serve.ts'

/** How a request to add runs fails. */
export interface Failure {
  /** Fraction of its inputs that are added, from 0 to 1. */
  readonly taken: number
  /** Status of the response; without one the connection breaks. */
  readonly status?: number
}

/** Where a connection breaks: after this many bytes that the client sends (`up`) or receives (`down`). */
export interface Cut {
  readonly side: 'up' | 'down'
  readonly bytes: number
}

/** The failures, in order: one for each request to add runs and for each connection; none after the last. */
export interface Plan {
  readonly failures: readonly Failure[]
  readonly cuts: readonly (Cut | undefined)[]
  /** Number of reads of the runs stream before a run has ended. */
  readonly slowness: number
}

interface StoredRun {
  readonly run: TaskRun
  readonly input: RunInput
  reads: number
}

/** A task group behind a proxy that breaks connections at any byte, both real servers. The test closes it. */
export class UnreliableGroup {
  readonly taken: StoredRun[] = []
  readonly #plan: Plan
  readonly #failures: Failure[]
  readonly #cuts: (Cut | undefined)[]
  readonly #service = createHttpServer((request, response) => void this.#serve(request, response))
  readonly #wire = createServer((client) => this.#forward(client))
  readonly #sockets = new Set<Socket>()

  constructor(plan: Plan) {
    this.#plan = plan
    this.#failures = [...plan.failures]
    this.#cuts = [...plan.cuts]
  }

  /** Resolves to the URL of the proxy. */
  async open(): Promise<string> {
    await listening(this.#service)
    return `http://127.0.0.1:${await listening(this.#wire)}`
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#wire.close()
    this.#service.closeAllConnections()
    this.#service.close()
  }

  #forward(client: Socket): void {
    const service = connect(portOf(this.#service), '127.0.0.1')
    const cut = this.#cuts.shift()
    const both = [client, service]
    const end = () => {
      for (const socket of both) socket.destroy()
    }
    for (const socket of both) {
      this.#sockets.add(socket)
      socket.on('error', end)
      socket.on('close', end)
    }
    const pass = (side: Cut['side'], from: Socket, to: Socket) => {
      let left = cut?.side === side ? cut.bytes : Infinity
      from.on('data', (chunk) => {
        const rest = left
        left -= chunk.length
        if (left > 0) return to.write(chunk)
        // Bytes before the cut arrive, and none after it.
        return to.write(chunk.subarray(0, rest), () => end())
      })
    }
    pass('up', client, service)
    pass('down', service, client)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?')[0] ?? ''
    if (request.method === 'POST') return this.#add(request, response)
    if (path.endsWith('/runs')) return this.#stream(request, response)
    answer(response, { taskgroup_id: 'g', status: this.#status(), created_at: 'c' })
  }

  async #add(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    try {
      for await (const chunk of request) text += String(chunk)
    } catch {
      return
    }
    const { inputs } = JSON.parse(text) as { inputs: RunInput[] }
    const failure = this.#failures.shift()
    const taken = inputs.slice(0, Math.ceil(inputs.length * (failure?.taken ?? 1)))
    const run_ids = taken.map((input) => this.#take(input))
    if (failure === undefined) {
      answer(response, { status: this.#status(), run_ids, run_cursor: '', event_cursor: '' })
    } else if (failure.status === undefined) {
      response.destroy()
    } else {
      answer(response, { type: 'error', error: { ref_id: 'r', message: 'failed' } }, failure.status)
    }
  }

  #take(input: RunInput): string {
    const run_id = `run_${this.taken.length}`
    const { metadata = {} } = input
    const times = { created_at: 'c', modified_at: 'm' }
    const run = { run_id, status: 'completed', is_active: false, processor: 'p', metadata, ...times } as const
    this.taken.push({ run, input, reads: 0 })
    return run_id
  }

  /** Sends the ended runs and closes the stream. */
  #stream(request: IncomingMessage, response: ServerResponse): void {
    const after = Number(queryOf(request).get('last_event_id') ?? -1)
    for (const run of this.taken) run.reads += 1
    openStream(response)
    const ended = this.taken.filter((run) => this.#hasEnded(run))
    // A cursor is an index in the order of adding, which is that of ending too, since all runs are equally slow.
    const events = ended.map(({ run, input }, index) => {
      const event = { type: 'task_run.state', event_id: String(index), run, input }
      return sse(event)
    })
    response.end(events.slice(after + 1).join(''))
  }

  #hasEnded({ reads }: StoredRun): boolean {
    return reads > this.#plan.slowness
  }

  #status(): TaskGroupStatus {
    const completed = this.taken.filter((run) => this.#hasEnded(run)).length
    const running = this.taken.length - completed
    return {
      num_task_runs: this.taken.length,
      task_run_status_counts: { completed, running },
      is_active: running > 0,
      status_message: '',
      modified_at: 'm',
    }
  }
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return portOf(server)
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}
