import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { filter, firstValueFrom, ReplaySubject, Subject, tap } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient, ProtocolError } from 'rivulet'
import type { AddRunsRequest, ClientOptions, ExecutedRun, ExecuteOptions, RunInput } from 'rivulet'
import { Gate, withGate } from '../../../src/protocol/gate.ts'
import { createExchange } from '../../../src/transport/undici-exchange.ts'
import type { Exchange } from '../../../src/transport/exchange.ts'
import { all } from '../../e2e/research.ts'
import { answer, openStream, serve, sse } from '../../support/serve.ts'
import { bodyOf } from '../../transport/server.ts'

const inputsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ input: `question ${n}` }))

/** A group whose runs end when the test calls `end`. A run's id is its index in the group. */
class ScriptedGroup {
  /** Number of its runs. */
  size = 0
  /** Number of runs in its responses so far. */
  responded = 0
  active = true
  readonly streams = new Set<ServerResponse>()
  readonly streamed = new Subject<ServerResponse>()
  /** Emits when its status is requested; replayed to late subscribers. */
  readonly statusRequested = new ReplaySubject<void>(1)
  /** Called before each response, with the number of earlier requests. */
  beforeResponse: (requests: number) => Promise<void> | void = () => {}
  /** Replaces the cursor in its responses. */
  cursorInstead: { readonly value: unknown } | undefined
  readonly requests: AddRunsRequest[] = []
  #log: string[] = []

  /** Ends a run. */
  end(run_id: string, status = 'completed'): void {
    const run = { run_id, status, is_active: false, processor: 'p', created_at: 'c', modified_at: 'm' }
    const event = { type: 'task_run.state', event_id: String(this.#log.length), run }
    this.#log.push(sse(event))
    for (const stream of this.streams) stream.write(sse(event))
  }

  /** Resolves when its stream is connected. */
  async connected(): Promise<void> {
    if (this.streams.size === 0) await firstValueFrom(this.streamed)
  }

  /** Closes every stream cleanly: no run is active. */
  closeStreams(): void {
    this.active = false
    for (const stream of this.streams) stream.end()
  }

  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (request.method === 'POST') {
      const body = JSON.parse(await bodyOf(request)) as AddRunsRequest
      const number = this.requests.push(body) - 1
      const run_ids = body.inputs.map(() => String(this.size++))
      const position = this.#log.length === 0 ? '' : String(this.#log.length - 1)
      const run_cursor = this.cursorInstead === undefined ? position : this.cursorInstead.value
      this.active = true
      await this.beforeResponse(number)
      this.responded = this.size
      answer(response, { status: this.#status(), run_ids, run_cursor, event_cursor: '' })
    } else if (url.pathname.endsWith('/runs')) {
      openStream(response)
      const after = url.searchParams.get('last_event_id')
      response.write(this.#log.slice(after === null ? 0 : Number(after) + 1).join(''))
      if (!this.active) return void response.end()
      this.streams.add(response)
      response.on('close', () => this.streams.delete(response))
      this.streamed.next(response)
    } else {
      answer(response, { taskgroup_id: 'g', status: this.#status(), created_at: 'c' })
      this.statusRequested.next()
    }
  }

  #status() {
    const counts = { completed: this.#log.length, running: this.size - this.#log.length }
    const group = { num_task_runs: this.size, task_run_status_counts: counts, is_active: this.active }
    return { ...group, status_message: '', modified_at: 'm' }
  }
}

async function scripted(settings: ClientOptions = {}) {
  const group = new ScriptedGroup()
  const baseUrl = await serve((request, response) => void group.handle(request, response))
  const client = createClient({
    baseUrl,
    apiKey: 'key',
    initialDelay: 0,
    ...settings,
  })
  const emitted = new Subject<ExecutedRun>()
  const execute = (inputs: readonly RunInput[], options?: ExecuteOptions) =>
    client.taskGroups.execute('g', inputs, options).pipe(tap((result) => emitted.next(result)))
  return { group, execute, emitted }
}

/** An exchange that records each pause (true) and resume (false) of a flow. */
function recordingExchange() {
  const plain = createExchange()
  const pauses: boolean[] = []
  const paused = new Subject<void>()
  const exchange: Exchange = (request, sink) => {
    const flow = plain(request, sink)
    return {
      pause() {
        pauses.push(true)
        flow.pause()
        paused.next()
      },
      resume() {
        pauses.push(false)
        flow.resume()
      },
      abort: () => flow.abort(),
    }
  }
  return { exchange, pauses, paused }
}

const indexes = (results: readonly ExecutedRun[]) => results.map(({ index }) => index)

describe('execute', () => {
  it('emits the first runs while later ones are still being added', async () => {
    const { group, execute, emitted } = await scripted()
    const first = firstValueFrom(emitted)
    group.streamed.subscribe(() => group.end('7'))
    group.beforeResponse = async (requests) => {
      if (requests === 0) return
      // The second response waits for a result of the first request.
      await first
      for (let run = 0; run <= 1_000; run++) if (run !== 7) group.end(String(run))
    }

    const results = await all(execute(inputsOf(1_001)))

    expect(results[0]?.index).toBe(7)
    expect(new Set(indexes(results)).size).toBe(1_001)
    expect(results).toHaveLength(1_001)
  })

  it('does not lose a run that ended before the response to its own request', async () => {
    const { group, execute, emitted } = await scripted()
    group.beforeResponse = async (requests) => {
      if (requests === 0) return
      await group.connected()
      const next = firstValueFrom(emitted)
      group.end('1000')
      group.end('0')
      // The client has received the earlier events of the stream too.
      await next
    }
    emitted.pipe(filter(({ index }) => index === 1_000)).subscribe(() => {
      for (let run = 1; run < 1_000; run++) group.end(String(run))
    })

    const results = await all(execute(inputsOf(1_001)))

    expect(indexes(results).slice(0, 2)).toEqual([0, 1_000])
    expect(new Set(indexes(results)).size).toBe(1_001)
  })

  it('reconnects to the stream when the group was idle between two batches', async () => {
    const { group, execute } = await scripted()
    let read = 0
    group.streamed.subscribe(() => {
      for (; read < group.responded; read++) group.end(String(read))
      group.closeStreams()
    })
    group.beforeResponse = async (requests) => {
      if (requests === 0) return
      group.active = false
      // The stream of the first batch completes once the client knows that no run is active.
      await firstValueFrom(group.statusRequested)
      group.active = true
    }

    const results = await all(execute(inputsOf(1_001)))

    expect(new Set(indexes(results)).size).toBe(1_001)
    expect(results).toHaveLength(1_001)
  })

  it('pauses the stream when many runs of other callers end while a request is in flight', async () => {
    const { exchange, pauses, paused } = recordingExchange()
    const { group, execute } = await scripted({ exchange })
    group.beforeResponse = async (requests) => {
      if (requests === 0) return
      await group.connected()
      const full = firstValueFrom(paused)
      for (let n = 0; n < 1_500; n++) group.end(`other ${n}`)
      await full
      for (let run = 0; run <= 1_000; run++) group.end(String(run))
    }

    const results = await all(execute(inputsOf(1_001)))

    expect(pauses).toEqual([true, false])
    expect(new Set(indexes(results)).size).toBe(1_001)
  })

  it('reads nothing while its subscriber is paused', async () => {
    const { exchange, paused } = recordingExchange()
    const { group, execute } = await scripted({ exchange })
    group.streamed.subscribe(() => {
      for (const run of ['0', '1']) group.end(run)
    })
    const firstPause = firstValueFrom(paused)
    const gate = new Gate()
    gate.close()
    const results: ExecutedRun[] = []
    const done = withGate(gate, () => all(execute(inputsOf(2)).pipe(tap((result) => results.push(result)))))

    await firstPause
    const before = results.length
    gate.open()
    await done

    expect(before).toBe(0)
    expect(indexes(results)).toEqual([0, 1])
  })

  it('does not retry a cancelled run, and lists it among those that did not complete', async () => {
    const { group, execute } = await scripted()
    group.streamed.subscribe(() => {
      group.end('0')
      group.end('1', 'cancelled')
    })
    const results: ExecutedRun[] = []

    const error: unknown = await all(
      execute(inputsOf(2), { retryFailed: 3 }).pipe(tap((result) => results.push(result))),
    ).catch((thrown: unknown) => thrown)

    expect(results.map(({ index, run, output }) => [index, run.status, output])).toEqual([
      [0, 'completed', null],
      [1, 'cancelled', null],
    ])
    expect(error).toMatchObject({
      name: 'ExecutionError',
      message: expect.stringContaining('1 of 2 runs did not complete: inputs[1] was cancelled'),
    })
    expect(group.requests).toHaveLength(1)
  })

  it('retries all runs that failed meanwhile in one request', async () => {
    const { group, execute, emitted } = await scripted()
    group.streamed.subscribe(() => group.end('0', 'failed'))
    group.beforeResponse = async (requests) => {
      if (requests === 0) return
      if (requests === 1) {
        const next = firstValueFrom(emitted)
        for (const run of ['1', '2', '3']) group.end(run, 'failed')
        group.end('4')
        await next
        return
      }
      for (const run of ['5', '6', '7', '8']) group.end(run)
    }

    const results = await all(execute(inputsOf(5), { retryFailed: 1 }))

    expect(indexes(results).toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4])
    expect(group.requests.map(({ inputs }) => inputs.length)).toEqual([5, 1, 3])
  })

  it('counts the attempts at an input also if the stream leaves out the metadata', async () => {
    const { group, execute } = await scripted()
    group.streamed.subscribe(() => group.end('0', 'failed'))
    group.beforeResponse = (requests) => {
      if (requests > 0) group.end(String(requests), requests === 1 ? 'failed' : 'completed')
    }

    await all(execute(inputsOf(1), { retryFailed: 2 }))

    expect(group.requests.map(({ inputs }) => inputs[0]?.metadata)).toEqual([
      undefined,
      { rivulet_retry_of: '0', rivulet_first: '0', rivulet_attempt: '2' },
      { rivulet_retry_of: '1', rivulet_first: '0', rivulet_attempt: '3' },
    ])
  })

  it('errors if the stream never has a run that was added', async () => {
    // A stream whose number of events is unknown is done when it has been idle as long as this.
    const { group, execute } = await scripted({ patience: 20 })
    group.streamed.subscribe(() => {
      group.end('0')
      group.closeStreams()
    })
    const results: ExecutedRun[] = []

    const error: unknown = await all(execute(inputsOf(2)).pipe(tap((result) => results.push(result)))).catch(
      (thrown: unknown) => thrown,
    )

    expect(indexes(results)).toEqual([0])
    expect(error).toBeInstanceOf(ProtocolError)
    expect(error).toMatchObject({
      retryable: false,
      message: expect.stringContaining('without 1 of the added runs'),
    })
  })

  it.each([[null], [undefined], [7], [{}], [''], [' ']])(
    'reads from the beginning if the cursor of its runs is %j',
    async (value) => {
      const { group, execute } = await scripted()
      group.cursorInstead = { value }
      group.streamed.subscribe(() => {
        group.end('1')
        group.end('0')
      })

      const results = await all(execute(inputsOf(2)))

      expect(indexes(results)).toEqual([1, 0])
    },
  )

  it('does not skip the first batch if only the second one has a cursor', async () => {
    const { group, execute } = await scripted()
    group.cursorInstead = { value: null }
    group.beforeResponse = (requests) => {
      if (requests === 0) return
      // All runs end before the stream is read, and the second cursor comes after them.
      for (let run = 0; run <= 1_000; run++) group.end(String(run))
      group.cursorInstead = { value: '900' }
    }

    const results = await all(execute(inputsOf(1_001)))

    expect(new Set(indexes(results)).size).toBe(1_001)
  })

  it.each([[null], [7], ['']])('treats the id %j as missing', async (id) => {
    const baseUrl = await serve((_request, response) =>
      answer(response, { status: {}, run_ids: ['0', id], run_cursor: '', event_cursor: '' }),
    )
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const error: unknown = await all(client.taskGroups.execute('g', inputsOf(2))).catch(
      (thrown: unknown) => thrown,
    )

    expect(error).toMatchObject({ name: 'UncertainWriteError', inDoubt: [0, 1] })
  })

  it('destroys the socket of its stream when it is unsubscribed', async () => {
    const { group, execute } = await scripted()
    const opened = firstValueFrom(group.streamed)
    const requested = new Promise<void>((resolve) => {
      group.beforeResponse = (requests) => {
        if (requests === 0) return undefined
        resolve()
        return new Promise(() => {})
      }
    })
    const subscription = execute(inputsOf(1_001)).subscribe()
    const stream = await opened
    await requested

    subscription.unsubscribe()

    await once(stream, 'close')
    expect(group.streams.size).toBe(0)
  })
})
