import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import type { OpenEventWriter } from '../../http/node-event-writer.ts'
import { MAX_RUN_STREAM_DURATION } from '../../protocol/limits.ts'
import { createRunRequest, runResultQuery } from '../../protocol/requests/tasks.ts'
import { FIELD_BASIS_BETA, WEBHOOK_BETA } from '../../protocol/betas.ts'
import type { Clock } from '../clock.ts'
import { betaHeaderOf, hasBeta } from '../http/betas.ts'
import { streamEvents } from '../http/event-stream.ts'
import { bodySchema, querySchema } from '../http/request-schema.ts'
import { issue, readJson, readQuery, unprocessable } from '../http/validation.ts'
import { runFeed } from './run-feed.ts'
import type { Runs } from './runs.ts'
import type { TaskStore } from './task-store.ts'

/** Settings of {@link runEventRoutes}. */
export interface RunEventRoutesOptions {
  readonly runs: Runs
  readonly store: TaskStore
  /** The clock of connections: real time, except in tests. */
  readonly clock: Clock
  /** Opens the writer of a stream, by the path of its request. Default: without faults. */
  readonly openWriter?: ((path: string) => OpenEventWriter) | undefined
  /** Maximum duration of a stream, in ms of real time. */
  readonly streamDuration: number
  /** Called with errors of a stream, and the `ref_id` that the client got. */
  readonly onError: (error: unknown, ref_id: string) => void
  /** The functions that end open streams, for closing the service. */
  readonly streams: Set<() => void>
}

/** Settings of {@link runRoutes}. */
export interface RunRoutesOptions {
  readonly runs: Runs
  readonly store: TaskStore
  /** The clock of connections: real time, except in tests. */
  readonly clock: Clock
  /** Aborted when the service closes; ends requests that wait for results. */
  readonly closing: AbortSignal
}

const createRunBody = bodySchema(createRunRequest)
const resultQuery = querySchema(runResultQuery)

/** Default timeout of a request for a result, in s; beyond the interface document. */
const DEFAULT_WAIT = 600

/** Routes of single task runs; beyond the interface document, except for the webhook's header (§6.1). */
export function runRoutes({ runs, store, clock, closing }: RunRoutesOptions) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/', async (c) => {
    const input = await readJson(c, createRunBody, unprocessable)
    if (input.webhook !== undefined && !hasBeta(c, WEBHOOK_BETA)) {
      const message = `Webhooks are in beta: send the header ${betaHeaderOf(c)} with the value ${WEBHOOK_BETA}`
      throw unprocessable([issue(['body', 'webhook'], message)])
    }
    return c.json(await runs.create(input, hasBeta(c, FIELD_BASIS_BETA)), 202)
  })

  routes.get('/:run_id', (c) => c.json(runs.get(c.req.param('run_id'))))

  routes.get('/:run_id/input', (c) => {
    const run = runs.get(c.req.param('run_id'))
    return c.json(store.input(run.run_id))
  })

  routes.get('/:run_id/result', async (c) => {
    const { run_id } = runs.get(c.req.param('run_id'))
    const { timeout = DEFAULT_WAIT } = readQuery(c, resultQuery, unprocessable)
    const { outgoing } = c.env
    const late = new AbortController()
    const stop = () => late.abort()
    const cancel = clock.schedule(timeout * 1_000, stop)
    closing.addEventListener('abort', stop)
    outgoing.on('close', stop)
    if (!closing.aborted) await runs.ended(run_id, late.signal)
    closing.removeEventListener('abort', stop)
    outgoing.off('close', stop)
    cancel()
    return c.json(runs.result(run_id))
  })

  return routes
}

/** The route of a run's events, mounted under both prefixes; beyond the interface document. */
export function runEventRoutes(options: RunEventRoutesOptions) {
  const { runs, store, clock, openWriter, streamDuration, onError, streams } = options
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.get('/:run_id/events', (c) => {
    const { run_id } = runs.get(c.req.param('run_id'))
    const { outgoing } = c.env
    const end = streamEvents(outgoing, runFeed(store, run_id), {
      clock,
      duration: Math.min(streamDuration, MAX_RUN_STREAM_DURATION),
      onError,
      ...(openWriter !== undefined && { openWriter: openWriter(c.req.path) }),
    })
    streams.add(end)
    outgoing.on('close', () => streams.delete(end))
    return RESPONSE_ALREADY_SENT
  })

  return routes
}
