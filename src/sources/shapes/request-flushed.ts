/**
 * Resolves once a request that was just made has been written. On Node it is dispatched in the next microtask, and undici
 * writes it in the next turn of the event loop; elsewhere `fetch` sends it immediately.
 */
export async function requestFlushed(): Promise<void> {
  if (typeof setImmediate !== 'function') return
  await Promise.resolve()
  await new Promise((resolve) => setImmediate(resolve))
}
