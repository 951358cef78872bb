import { Hono } from 'hono'
import { MEMORY_BETA } from '../../protocol/betas.ts'
import {
  memoryClearRequest,
  memoryEvictRequest,
  memoryRetrieveRequest,
} from '../../protocol/requests/memory.ts'
import { requireBeta } from '../http/betas.ts'
import { bodySchema } from '../http/request-schema.ts'
import { readJson, unprocessable } from '../http/validation.ts'
import type { Memories } from './memories.ts'

const retrieveBody = bodySchema(memoryRetrieveRequest)
const clearBody = bodySchema(memoryClearRequest)
const evictBody = bodySchema(memoryEvictRequest)

/** Routes of memories, mounted under `/v1beta/memory`; all beyond the interface document. */
export function memoryRoutes(memories: Memories): Hono {
  const routes = new Hono()
  routes.use(requireBeta(MEMORY_BETA, 'Memory'))

  routes.post('/retrieve', async (c) =>
    c.json({ results: await memories.retrieve(await readJson(c, retrieveBody, unprocessable)) }),
  )

  routes.post('/clear', async (c) => {
    memories.clear(await readJson(c, clearBody, unprocessable))
    return c.body(null, 204)
  })

  // The same answer for a memory that the scope does not have, so that it reveals nothing.
  routes.post('/evict', async (c) => {
    memories.evict(await readJson(c, evictBody, unprocessable))
    return c.body(null, 204)
  })

  return routes
}
