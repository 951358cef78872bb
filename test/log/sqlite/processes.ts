import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { programFiles } from '../../support/programs.ts'
import type { Call, Result } from './log-process.ts'

const fileOf = await programFiles()
const execArgv = ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning']

/** Another process with the log of a file. It is killed after the test. */
export function startLogProcess(file: string) {
  const child = fork(fileOf('test/log/sqlite/log-process.ts'), [file], { execArgv })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exited = once(child, 'exit').then(([code, signal]: unknown[]) => signal ?? code)
  const calls = new Map<number, PromiseWithResolvers<unknown>>()
  child.on('message', ({ id, value, error }: Result) => {
    const call = calls.get(id)
    if (error === undefined) call?.resolve(value)
    else call?.reject(Object.assign(new Error(error.message), { name: error.name }))
  })
  let calling = 0
  return {
    pid: child.pid,
    exited,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    call(method: Call['method'], ...args: readonly unknown[]): Promise<unknown> {
      const id = ++calling
      const call = Promise.withResolvers<unknown>()
      calls.set(id, call)
      child.send({ id, method, args } satisfies Call)
      return call.promise
    },
  }
}

/** Runs a program beside the tests to its end. Returns how it ended, and the last message that it sent. */
export async function runProgram(program: string, ...args: readonly string[]) {
  const child = fork(join(import.meta.dirname, program), args, { execArgv })
  onTestFinished(() => void child.kill('SIGKILL'))
  let message: unknown
  child.on('message', (received) => (message = received))
  const [code, signal]: unknown[] = await once(child, 'exit')
  return { ended: signal ?? code, message }
}
