import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ENGINE_MUTANTS } from './mutants.ts'

const program = fileURLToPath(new URL('mutant-process.ts', import.meta.url))

test('the comparison with the definitions fails for each mutant of the engine', { timeout: 120_000 }, () => {
  const output = execFileSync(process.execPath, ['--conditions=rivulet-source', program], {
    encoding: 'utf8',
  })
  const results: readonly { readonly name: string; readonly failed: boolean }[] = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(results.map(({ name }) => name)).toEqual(Object.keys(ENGINE_MUTANTS))
  expect(results.filter(({ failed }) => !failed)).toEqual([])
})
