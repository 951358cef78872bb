import type { LiveSnapshot } from '../protocol/live.ts'

/** Characters that end a script element or begin a comment in it, and two line ends that old scripts do not allow in a string. */
const SPECIAL = /[<>&\u2028\u2029]/g

/**
 * A snapshot as JSON that can stand within a script element, whatever its rows contain. It is valid JavaScript as well.
 *
 * A `<script type="application/json">` is data, which a strict Content Security Policy allows without a nonce. The browser passes
 * it on to `connect` as `initial`.
 *
 * ```ts
 * import type { Gateway, Grant } from 'rivulet/gateway'
 * import { inlineSnapshot } from 'rivulet/react'
 *
 * declare const gateway: Gateway<{}>
 * declare const grant: Grant
 *
 * const initial = await gateway.snapshot(grant, [])
 * const html = `<script type="application/json" id="initial">${inlineSnapshot(initial)}</script>`
 * // In the browser: connect({ initial: JSON.parse(document.getElementById('initial').textContent), … })
 * ```
 */
export function inlineSnapshot(snapshot: LiveSnapshot): string {
  return JSON.stringify(snapshot).replace(
    SPECIAL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
