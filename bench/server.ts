import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A server in a process of its own. */
export interface BenchServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly process: ChildProcess
}

/** Starts `servers/{name}.ts`; it ends when it is disposed of. */
export async function startServer(name: string, args: readonly string[] = []): Promise<BenchServer> {
  const file = fileURLToPath(new URL(`servers/${name}.ts`, import.meta.url))
  // Its memory is no part of what is measured, nor are the flags of this process meant for it.
  const child = fork(file, args, { execArgv: ['--conditions=rivulet-source'] })
  const [{ port }] = await once(child, 'message')
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    process: child,
    async [Symbol.asyncDispose]() {
      const exit = once(child, 'exit')
      child.disconnect()
      await exit
    },
  }
}

/** In the server's process: tells where it listens, and ends with the process that started it. */
export function announce(port: number): void {
  process.send?.({ port })
  process.once('disconnect', () => process.exit())
}
