import { contentHash } from '../../protocol/identity.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** The longest part of a path, as `rowKey` writes it, in characters. Two of them and the `/` fit into the key of a process. */
const MAX_PART = 500

/**
 * A text as a part of a row's path. A text that is too long for the key of a process, or that UTF-8 does not preserve, becomes a hash
 * of it.
 */
export function pathPart(text: string): string {
  if (text.isWellFormed() && encodeURIComponent(text).length <= MAX_PART) return text
  return `#${contentHash(text)}`
}

/** The longest id that a row has, in characters: the longest one of the service. */
const MAX_ID = 512

/** An id as a row has it. */
export function shownId(id: string): string {
  return id.length <= MAX_ID ? id : `${cutText(id, MAX_ID - 1)}…`
}

/** The id of a resource, from its source: `id` for `/v1/monitors/{id}` with the prefix `/v1/monitors/`. Undefined for another source. */
export function idOfSource(source: string, prefix: string): string | undefined {
  if (!source.startsWith(prefix)) return undefined
  const segment = source.slice(prefix.length)
  if (segment === '' || segment.includes('/')) return undefined
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
