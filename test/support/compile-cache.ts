import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Lets the processes that tests start share what Node has compiled, since compilation is half of their start. */
export default async function shareCompileCache(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-compiled-'))
  process.env['NODE_COMPILE_CACHE'] = folder
  // A worker that ends may still write to it.
  return () => rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
