/**
 * Each response and each webhook of an embedded service is validated against its OpenAPI document. A test with one that deviates
 * fails.
 */
import { afterAll, afterEach, vi } from 'vitest'
// oxlint-disable-next-line import/no-unassigned-import -- Before a server replaces the global `Response`, as where the service starts.
import '../../src/service/http/json-response.ts'
// Files that share a process share the mocks below, and so what these find; this file is evaluated for each of them.
import { deviations } from './deviations.ts'

vi.mock(import('../../src/service/app.ts'), async (original) => {
  const module = await original()
  const { heldToDocument } = await import('./held-answers.ts')
  return {
    ...module,
    createApp: (options) =>
      heldToDocument(module.createApp(options), options.faults, (deviation) => deviations.push(deviation)),
  }
})

vi.mock(import('../../src/service/webhooks/poster.ts'), async (original) => {
  const module = await original()
  const { posterHeldToDocument } = await import('./held-answers.ts')
  return {
    ...module,
    createPoster: (timeout, isAllowed) =>
      posterHeldToDocument(module.createPoster(timeout, isAllowed), (deviation) =>
        deviations.push(deviation),
      ),
  }
})

function failForDeviations() {
  const found = deviations.splice(0)
  if (found.length > 0) throw new Error(`The service deviated from /openapi.json:\n${found.join('\n')}`)
}

afterEach(failForDeviations)
// For what is sent while a test ends.
afterAll(failForDeviations)
