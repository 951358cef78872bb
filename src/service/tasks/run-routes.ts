import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { createRunRequest, runResultQuery } from '../../protocol/requests/tasks.ts'
import type { TaskRun } from '../../protocol/task.ts'
import { WEBHOOK_BETA } from '../../protocol/betas.ts'
import type { Clock } from '../clock.ts'
import { problem } from '../http/problem.ts'
import { bodySchema, querySchema } from '../http/request-schema.ts'
import { issue, readJson, readQuery, unprocessable } from '../http/validation.ts'
import { newRun, unknownInteractions } from './run-request.ts'
import type { TaskStore } from './task-store.ts'

/** Settings of {@link runRoutes}. */
export interface RunRoutesOptions {
  readonly store: TaskStore
  /** The clock of connections: real time, except in tests. */
  readonly clock: Clock
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
export function runRoutes({ store, clock, onRuns, closing }: RunRoutesOptions) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/', async (c) => {
    const input = await readJson(c, createRunBody, unprocessable)
    if (input.webhook !== undefined && !betas(c.req.header('service-beta')).includes(WEBHOOK_BETA)) {
      const message = `Webhooks are in beta: send the header service-beta with the value ${WEBHOOK_BETA}`
      throw unprocessable([issue(['body', 'webhook'], message)])
    }
    const { run, issues } = newRun(input)
    const unknown = unknownInteractions(
      [input],
      (id) => store.isInteraction(id),
      () => ['body'],
    )
    if (issues.length + unknown.length > 0) throw unprocessable([...issues, ...unknown])
    const added = store.addRun(run)
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

function existing(store: TaskStore, id: string): TaskRun {
  const run = store.run(id)
  if (run === undefined) throw problem(404, `Task run not found: ${id}`)
  return run
}

/** The beta features in a header, which may have several. */
function betas(header: string | undefined): string[] {
  return (header ?? '').split(',').map((name) => name.trim())
}
