import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** The next message of a forked process. Rejects with "{name} ended with {code} before it {did}" if the process ends first. */
export async function messageOf(child: ChildProcess, name: string, did: string): Promise<unknown> {
  const over = new AbortController()
  const message = once(child, 'message', over)
  const exit = once(child, 'exit', over).then(([code, signal]) => {
    throw new Error(`${name} ended with ${code ?? signal} before it ${did}`)
  })
  try {
    const [first] = await Promise.race([message, exit])
    return first
  } finally {
    // Removes the other listener.
    over.abort()
  }
}

/** Resolves when the process has ended. */
export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
