import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'rolldown'
import { bundledName, PROGRAMS, sourceFile } from './programs.ts'

/** Bundles the programs that tests start as processes, with all that they import. Resolves to their folder. */
export async function bundlePrograms(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-programs-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  await build({
    input: {
      ...Object.fromEntries(PROGRAMS.map((program) => [bundledName(program), sourceFile(program)])),
      // The service starts it as a thread, from there.
      'isolated/worker': 'src/service/isolated/worker.ts',
    },
    platform: 'node',
    resolve: { conditionNames: ['rivulet-source', 'node', 'import', 'default'] },
    // For the page of the dashboard, which none of them shows.
    external: ['rolldown'],
    transform: { target: 'es2023' },
    output: { dir: folder, entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    logLevel: 'warn',
  })
  return folder
}
