import { serveJobs } from '../../../src/service/isolated/serve-jobs.ts'

/** Jobs that do not end well. */
export const hostileJobs = {
  echo: async () => (input: string) => input,
  loop: async () => () => {
    for (;;);
  },
  backtrack: async () => (text: string) => /(a|a)*c$/.test(text),
  fill: async () => () => {
    const kept: unknown[] = []
    for (;;) kept.push(Array.from({ length: 10_000 }, (_, index) => ({ index })))
  },
  exit: async () => () => process.exit(3),
  fail: async () => () => {
    throw new RangeError('no such value')
  },
  reject: async () => () => {
    setImmediate(() => {
      throw new Error('later')
    })
    return new Promise<never>(() => {})
  },
  result: async () => () => () => 'a function cannot be copied',
}

serveJobs(hostileJobs)
