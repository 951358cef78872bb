import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { ended, messageOf } from './child.ts'

/** A server in a separate process. */
export interface BenchServer extends AsyncDisposable {
  readonly url: string
  readonly process: ChildProcess
}

/** Starts `servers/{name}.ts`. Disposing of it ends the process. */
export async function startServer(name: string, args: readonly string[] = []): Promise<BenchServer> {
  const file = fileURLToPath(new URL(`servers/${name}.ts`, import.meta.url))
  // A separate process, so that its memory is not measured, without this process's flags.
  const child = fork(file, args, { execArgv: ['--conditions=rivulet-source'] })
  const { port }: { readonly port?: unknown } = Object(
    await messageOf(child, `the server ${name}`, 'listened'),
  )
  if (typeof port !== 'number') {
    child.kill()
    throw new Error(`the server ${name} did not send its port`)
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

/** In the server's process: listens and sends the port. */
export function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (typeof address === 'object' && address !== null) announce(address.port)
  })
}

/** In the server's process: sends the port, and ends with the parent process. */
export function announce(port: number): void {
  process.send?.({ port })
  process.once('disconnect', () => process.exit())
}
