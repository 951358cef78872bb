import { getRequestListener } from '@hono/node-server'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createApp } from '../../../src/service/app.ts'
import { ManualClock } from '../../../src/service/clock.ts'
import { Faults } from '../../../src/service/faults/faults.ts'
import { IsolatedError, type IsolatedErrorKind } from '../../../src/service/isolated/isolated-error.ts'
import { Quotas } from '../../../src/service/http/quota.ts'
import { createIsolated } from '../../../src/service/isolated/isolated.ts'
import { serve } from '../../support/serve.ts'

/** Requests a route of the service that does this, and returns the response with what was reported. */
async function answerOf(work: () => Promise<unknown>) {
  const reported: unknown[] = []
  const app = createApp({
    apiKeys: ['key'],
    faults: new Faults(),
    betaHeader: 'service-beta',
    quotas: new Quotas(new ManualClock(), {}),
    mount: (routes) => void routes.post('/v1/tasks/runs', async (c) => c.json({ result: await work() })),
    onError: (error, ref_id) => reported.push({ error: String(error), ref_id }),
  })
  const url = await serve(getRequestListener(app.fetch))
  const response = await fetch(`${url}/v1/tasks/runs`, { method: 'POST', headers: { 'x-api-key': 'key' } })
  return { response, body: await response.json(), reported }
}

describe('a request that could not be checked', () => {
  it('gets a 503 when the isolated thread crashes, which is reported with its ref_id', async () => {
    const file = new URL('../isolated/crashing-worker.ts', import.meta.url)
    const isolated = createIsolated(file)
    onTestFinished(() => isolated.close())
    const { response, body, reported } = await answerOf(() => isolated.checkSchema({}))

    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(body).toMatchObject({ type: 'error', error: { message: 'The isolated thread ended' } })
    expect(reported).toEqual([
      { error: 'IsolatedError: The isolated thread ended', ref_id: body.error.ref_id },
    ])
  })

  it.each<[IsolatedErrorKind]>([['busy'], ['closed']])(
    'gets a 503 that is not reported: %s',
    async (kind) => {
      const { response, reported } = await answerOf(() => Promise.reject(new IsolatedError(kind, 'later')))
      expect([response.status, reported]).toEqual([503, []])
    },
  )
})
