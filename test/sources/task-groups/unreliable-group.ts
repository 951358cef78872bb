import { createServer as createHttpServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { RunInput, TaskGroupStatus, TaskRun } from 'rivulet'
import { CutWire, portOf } from '../../support/cut-wire.ts'
import type { Cut } from '../../support/cut-wire.ts'
import { answer, openStream, queryOf, sse } from '../../support/serve.ts'

/** How a request to add runs fails. */
export interface Failure {
  /** Fraction of its inputs that are added, from 0 to 1. */
  readonly taken: number
  /** Status of the response; without one the connection breaks. */
  readonly status?: number
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
  readonly #service = createHttpServer((request, response) => void this.#serve(request, response))
  readonly #wire: CutWire

  constructor(plan: Plan) {
    this.#plan = plan
    this.#failures = [...plan.failures]
    this.#wire = new CutWire(plan.cuts)
  }

  /** Resolves to the URL of the proxy. */
  async open(): Promise<string> {
    this.#service.listen(0, '127.0.0.1')
    await once(this.#service, 'listening')
    return this.#wire.open(portOf(this.#service))
  }

  close(): void {
    this.#wire.close()
    this.#service.closeAllConnections()
    this.#service.close()
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
