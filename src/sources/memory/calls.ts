import { map } from 'rxjs'
import { MEMORY_BETA } from '../../protocol/betas.ts'
import { checkOptions } from '../../protocol/check.ts'
import type { MemoryEvictRequest, MemoryRetrieveRequest, MemoryScope } from '../../protocol/memory.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import {
  memoryClearRequest,
  memoryEvictRequest,
  memoryRetrieveRequest,
} from '../../protocol/requests/memory.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { requestBody } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { followMemory } from './follow.ts'
import type { FollowMemoryOptions, MemoryUpdate } from './follow.ts'
import { retrieval } from './retrieve.ts'
import type { RetrievedMemories } from './retrieve.ts'

/**
 * The calls of `client.memory`: what task runs, monitors and FindAll runs have found before, of the personal memory or of a scope.
 * All of them are beyond the interface document.
 */
export interface MemoryCalls extends ReturnType<typeof memoryCalls> {}

/** Creates `client.memory`. */
export function memoryCalls(context: Context) {
  return {
    /**
     * Emits the memories that match a query, best first, or the most recent ones without a query. One of a kind that this version does not
     * know, or without a field of its kind, has the kind `unknown`.
     *
     * ```ts
     * import { createClient } from 'rivulet'
     *
     * const { results } = await createClient().memory.retrieve({ query: 'solid state battery', kind: 'task' })
     * for (const memory of results) if (memory.kind === 'task') console.log(memory.output_excerpt)
     * ```
     */
    retrieve(
      request: MemoryRetrieveRequest = {},
      options: SourceOptions = {},
    ): AwaitableSource<RetrievedMemories> {
      checkOptions('options', options, ['signal'])
      // A misspelt scope would be the personal memory, also below.
      checkOptions('memory.retrieve', request, namesOf(memoryRetrieveRequest))
      checkRequest(memoryRetrieveRequest, request)
      return awaitable(retrieval(context, request), options.signal)
    },
    /**
     * Emits the results of a query, and again whenever they have changed: with what is new and what left. Asks again soon after one of
     * `events` that may change a memory, and from time to time.
     */
    follow(options?: FollowMemoryOptions): Source<MemoryUpdate> {
      return followMemory(context, options)
    },
    /** Forgets one memory. What made it stays. Emits also if there is no such memory. */
    evict(request: MemoryEvictRequest, options: SourceOptions = {}): AwaitableSource<void> {
      checkOptions('memory.evict', request, ['id', 'kind', 'memory_scope_key'])
      checkRequest(memoryEvictRequest, request)
      return command(context, '/v1beta/memory/evict', request, options)
    },
    /** Forgets all memories of a scope; without a scope, the whole personal memory. What made them stays. */
    clear(scope: MemoryScope = {}, options: SourceOptions = {}): AwaitableSource<void> {
      checkOptions('memory.clear', scope, ['memory_scope_key'])
      checkRequest(memoryClearRequest, scope)
      return command(context, '/v1beta/memory/clear', scope, options)
    },
  }
}

/** Sends a request that is answered with nothing. */
function command(
  context: Context,
  path: string,
  body: object,
  options: SourceOptions,
): AwaitableSource<void> {
  checkOptions('options', options, ['signal'])
  const call: ApiRequest = {
    method: 'POST',
    path,
    body,
    betas: [MEMORY_BETA],
    idempotent: true,
    mayBeEmpty: true,
  }
  return awaitable(requestBody(context, call).pipe(map(() => undefined)), options.signal)
}
