import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import { MEMORY_BETA } from '../../protocol/betas.ts'
import {
  memoryClearRequest,
  memoryEvictRequest,
  memoryRetrieveRequest,
} from '../../protocol/requests/memory.ts'
import { OpenRequests, unlessGone } from '../conversations/open-requests.ts'
import { requireBeta } from '../http/betas.ts'
import { bodySchema } from '../http/request-schema.ts'
import { readJson, unprocessable } from '../http/validation.ts'
import type { Memories } from './memories.ts'

const retrieveBody = bodySchema(memoryRetrieveRequest)
const clearBody = bodySchema(memoryClearRequest)
const evictBody = bodySchema(memoryEvictRequest)

/** Routes of memories, mounted under `/v1beta/memory`; all beyond the interface document. */
export function memoryRoutes(memories: Memories) {
  const routes = new Hono<{ Bindings: HttpBindings }>()
  const requests = new OpenRequests()
  routes.use(requireBeta(MEMORY_BETA, 'Memory'))

  routes.post('/retrieve', async (c) => {
    const request = await readJson(c, retrieveBody, unprocessable)
    const { outgoing } = c.env
    const results = await unlessGone(memories.retrieve(request, requests.open(outgoing)), outgoing)
    return results === undefined ? RESPONSE_ALREADY_SENT : c.json({ results })
  })

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
