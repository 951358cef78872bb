import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { ended, messageOf } from './child.ts'

/** A server in a process of its own. */
export interface BenchServer extends AsyncDisposable {
  readonly url: string
  readonly process: ChildProcess
}

/** Starts `servers/{name}.ts`; it ends when it is disposed of. */
export async function startServer(name: string, args: readonly string[] = []): Promise<BenchServer> {
  const file = fileURLToPath(new URL(`servers/${name}.ts`, import.meta.url))
  // Its memory is no part of what is measured, nor are the flags of this process meant for it.
  const child = fork(file, args, { execArgv: ['--conditions=rivulet-source'] })
  const { port }: { readonly port?: unknown } = Object(
    await messageOf(child, `the server ${name}`, 'listened'),
  )
  if (typeof port !== 'number') {
    child.kill()
    throw new Error(`the server ${name} does not say where it listens`)
  }
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect()
      await ended(child)
    },
  }
}

/** In the server's process: has it listen, and tells where. */
export function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (typeof address === 'object' && address !== null) announce(address.port)
  })
}

/** In the server's process: tells where it listens, and ends with the process that started it. */
export function announce(port: number): void {
  process.send?.({ port })
  process.once('disconnect', () => process.exit())
}
