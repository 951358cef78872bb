import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import type { OpenEventWriter } from '../../http/node-event-writer.ts'
import { MAX_RUN_STREAM_DURATION } from '../../protocol/limits.ts'
import { createRunRequest, runResultQuery } from '../../protocol/requests/tasks.ts'
import type { TaskRun } from '../../protocol/task.ts'
import { FIELD_BASIS_BETA, WEBHOOK_BETA } from '../../protocol/betas.ts'
import type { Clock } from '../clock.ts'
import { betaHeaderOf, hasBeta } from '../http/betas.ts'
import { streamEvents } from '../http/event-stream.ts'
import { problem } from '../http/problem.ts'
import { bodySchema, querySchema } from '../http/request-schema.ts'
import { issue, readJson, readQuery, unprocessable } from '../http/validation.ts'
import { runFeed } from './run-feed.ts'
import { newRun, type SchemaChecks, unknownInteractions } from './run-request.ts'
import type { TaskStore } from './task-store.ts'

/** Settings of {@link runEventRoutes}. */
export interface RunEventRoutesOptions {
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
  readonly store: TaskStore
  /** Checks the schemas of requests. */
  readonly checks: SchemaChecks
  /** The clock of connections: real time, except in tests. */
  readonly clock: Clock
  /** Called before runs are added, with their number. What it throws is the response. */
  readonly beforeRuns: (count: number) => void
  /** Called when a run was added. */
  readonly onRuns: () => void
  /** Aborted when the service closes; ends requests that wait for results. */
  readonly closing: AbortSignal
}

const createRunBody = bodySchema(createRunRequest)
const resultQuery = querySchema(runResultQuery)

/** Default timeout of a request for a result, in s; beyond the interface document. */
const DEFAULT_WAIT = 600

/** Routes of single task runs; beyond the interface document, except for the webhook's header (§6.1). */
export function runRoutes({ store, checks, clock, beforeRuns, onRuns, closing }: RunRoutesOptions) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/', async (c) => {
    const input = await readJson(c, createRunBody, unprocessable)
    if (input.webhook !== undefined && !hasBeta(c, WEBHOOK_BETA)) {
      const message = `Webhooks are in beta: send the header ${betaHeaderOf(c)} with the value ${WEBHOOK_BETA}`
      throw unprocessable([issue(['body', 'webhook'], message)])
    }
    const { run, issues } = await newRun(checks, input)
    const unknown = unknownInteractions(
      [input],
      (id) => store.isInteraction(id),
      () => ['body'],
    )
    if (issues.length + unknown.length > 0) throw unprocessable([...issues, ...unknown])
    beforeRuns(1)
    const added = store.addRun({ ...run, elementBasis: hasBeta(c, FIELD_BASIS_BETA) })
    onRuns()
    return c.json(added, 202)
  })

  routes.get('/:run_id', (c) => c.json(existing(store, c.req.param('run_id'))))

  routes.get('/:run_id/input', (c) => {
    const run = existing(store, c.req.param('run_id'))
    return c.json(store.input(run.run_id))
  })

  routes.get('/:run_id/result', async (c) => {
    const { run_id } = existing(store, c.req.param('run_id'))
    const { timeout = DEFAULT_WAIT } = readQuery(c, resultQuery, unprocessable)
    await ended(run_id, timeout * 1_000, c.env.outgoing)
    const run = existing(store, run_id)
    if (run.is_active) throw problem(408, `Task run ${run_id} is still active`, { status: run.status })
    const output = store.output(run_id)
    if (output === undefined) {
      throw problem(404, `Task run ${run_id} has no result, as its status is ${run.status}`, { run })
    }
    return c.json({ run, output })
  })

  /** Resolves when the run has ended, on timeout, when the client disconnects, or when the service closes. */
  function ended(runId: string, ms: number, outgoing: HttpBindings['outgoing']): Promise<void> {
    return new Promise((resolve) => {
      const active = () => store.run(runId)?.is_active === true
      if (!active() || closing.aborted) return resolve()
      const finish = () => {
        cancel()
        unsubscribe()
        closing.removeEventListener('abort', finish)
        outgoing.off('close', finish)
        resolve()
      }
      const cancel = clock.schedule(ms, finish)
      const unsubscribe = store.changes.on(runId, () => {
        if (!active()) finish()
      })
      closing.addEventListener('abort', finish)
      outgoing.on('close', finish)
    })
  }

  return routes
}

/** The route of a run's events, mounted under both prefixes; beyond the interface document. */
export function runEventRoutes(options: RunEventRoutesOptions) {
  const { store, clock, openWriter, streamDuration, onError, streams } = options
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.get('/:run_id/events', (c) => {
    const { run_id } = existing(store, c.req.param('run_id'))
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

function existing(store: TaskStore, id: string): TaskRun {
  const run = store.run(id)
  if (run === undefined) throw problem(404, `Task run not found: ${id}`)
  return run
}
