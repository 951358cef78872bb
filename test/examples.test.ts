import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = (file: string) =>
  promisify(execFile)(process.execPath, ['--conditions=rivulet-source', `examples/${file}`])

describe('the examples', () => {
  it.each(readdirSync('examples').filter((name) => name.endsWith('.ts')))(
    '%s runs to its end and has something to say',
    async (file) => {
      const { stdout } = await run(file)

      expect(stdout.trim()).not.toBe('')
    },
  )

  it('answer what RxJS does with what its documents say of it', async () => {
    const { stdout } = await run('first-pipeline.ts')

    expect(stdout).toMatch(/trun_\w+ \S.*Reactive[ -]Extensions/)
  })

  it("stand in the README as they stand in the folder, the first pipeline's lines", () => {
    const readme = readFileSync('README.md', 'utf8')

    expect(readme).toContain(readFileSync('examples/first-pipeline.ts', 'utf8').trim())
  })
})
