import type { Gate } from '../../protocol/gate.ts'

/** Resolves when the gate is open, or when the signal is aborted: whoever waits then has nothing left to do. */
export function opened(gate: Gate, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!gate.closed || signal.aborted) return resolve()
    const settle = () => {
      stop()
      signal.removeEventListener('abort', settle)
      resolve()
    }
    const stop = gate.onChange(settle)
    signal.addEventListener('abort', settle)
  })
}
