/**
 * Builds what test files start as processes, once for a run, when the first of them asks for it. A server answers with the folder,
 * since test files run in several processes.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { buildPackage } from '../package/build.ts'
import { bundlePrograms } from './bundle-programs.ts'

const BUILDERS: Readonly<Record<string, () => Promise<string>>> = {
  '/package': async () => (await buildPackage()).folder,
  '/programs': bundlePrograms,
}

export default async function setup({ config }: TestProject): Promise<() => Promise<void>> {
  const builds = new Map<string, Promise<string>>()
  const server = createServer(async ({ url = '' }, response) => {
    const build = builds.get(url) ?? BUILDERS[url]?.() ?? Promise.reject(new RangeError(`no build ${url}`))
    builds.set(url, build)
    try {
      response.end(await build)
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  const compiled = await mkdtemp(join(tmpdir(), 'rivulet-compiled-'))
  // The processes that tests start share what Node has compiled, since compilation is half of their start.
  config.env = {
    ...config.env,
    RIVULET_TEST_BUILDS: `http://127.0.0.1:${address.port}`,
    NODE_COMPILE_CACHE: compiled,
  }
  return async () => {
    server.close()
    server.closeAllConnections()
    const folders = (await Promise.allSettled(builds.values())).flatMap((built) =>
      built.status === 'fulfilled' ? [built.value] : [],
    )
    // A process that a test has killed may still be ending.
    const options = { recursive: true, maxRetries: 5 } as const
    await Promise.all([compiled, ...folders].map((folder) => rm(folder, options)))
  }
}
