import { MEMORY_BETA } from '../../../protocol/betas.ts'
import {
  memoryClearRequest,
  memoryEvictRequest,
  memoryRetrieveRequest,
} from '../../../protocol/requests/memory.ts'
import { memoryRetrieveResponse } from '../answers/memory.ts'
import type { Endpoint } from '../endpoint.ts'

const common = {
  method: 'POST',
  area: 'Memory',
  betas: [MEMORY_BETA],
  errors: { 422: 'The request is not valid, or it has no beta header' },
} as const

/** The endpoints of memories; beyond the interface document. */
export const memoryEndpoints: readonly Endpoint[] = [
  {
    ...common,
    path: '/v1beta/memory/retrieve',
    operationId: 'retrieveMemories',
    summary: 'Returns what runs and monitors have found before',
    body: { name: 'MemoryRetrieveRequest', schema: memoryRetrieveRequest },
    answer: memoryRetrieveResponse,
  },
  {
    ...common,
    path: '/v1beta/memory/clear',
    operationId: 'clearMemories',
    summary: 'Forgets all memories of a scope; what made them stays',
    body: { name: 'MemoryClearRequest', schema: memoryClearRequest },
    status: 204,
  },
  {
    ...common,
    path: '/v1beta/memory/evict',
    operationId: 'evictMemory',
    summary: 'Forgets one memory of a scope; what made it stays',
    body: { name: 'MemoryEvictRequest', schema: memoryEvictRequest },
    status: 204,
  },
]
