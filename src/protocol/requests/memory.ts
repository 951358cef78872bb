import { MEMORY_KINDS } from '../memory.ts'
import type { MemoryEvictRequest, MemoryRetrieveRequest, MemoryScope } from '../memory.ts'
import { isTimestamp } from '../timestamp.ts'
import * as s from './kinds.ts'

/** Maximum length of a scope's key, in characters. */
const MAX_SCOPE_KEY = 512

/**
 * A memory scope. Not empty: an empty key would look like none. Without lone surrogates: a database stores them all as one character, so
 * two keys would be one scope.
 */
export const memoryScope = s.orNull<string>({
  kind: 'text',
  expected: `a non-empty, well-formed string of at most ${MAX_SCOPE_KEY} characters`,
  min: 1,
  max: MAX_SCOPE_KEY,
  fits: (given) => given.isWellFormed(),
})

const kind = s.oneOf(MEMORY_KINDS)

/** The body of `POST /v1beta/memory/retrieve`; beyond the interface document, as the others of this file. */
export const memoryRetrieveRequest = s.options<MemoryRetrieveRequest>({
  query: s.orNull(s.anyText('query')),
  kind: s.orNull(kind),
  limit: s.integer(1),
  since: s.orNull(s.textThat(isTimestamp, 'a time in RFC 3339, such as 2026-01-31T12:00:00Z')),
  memory_scope_key: memoryScope,
})

/** The body of `POST /v1beta/memory/clear`. */
export const memoryClearRequest = s.options<MemoryScope>({ memory_scope_key: memoryScope })

/** The body of `POST /v1beta/memory/evict`. */
export const memoryEvictRequest = s.object<MemoryEvictRequest>(
  { id: s.text('name'), kind },
  { memory_scope_key: memoryScope },
)
