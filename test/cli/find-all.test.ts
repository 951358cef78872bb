import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderOf, rivulet } from './command.ts'

/** A service over two documents, and the environment of a command that uses it. */
async function scene(options: readonly string[] = []) {
  const docs = await folderOf({
    'streams.md': '# streams\n\nA library of streams, written in TypeScript.\n',
    'parser.md': '# parser\n\nA library with a parser, written in Rust.\n',
  })
  const service = rivulet(['serve', '--json', '--docs', docs, ...options])
  const { service: printed } = JSON.parse(await service.stdoutLine())
  return { RIVULET_BASE_URL: String(printed.url), RIVULET_API_KEY: String(printed.api_key) }
}

const OBJECTIVE = 'Find all libraries written in TypeScript'

describe('rivulet find-all', () => {
  it('prints each match with its conditions', async () => {
    const env = await scene()
    const { code, stdout, stderr } = await rivulet(['find-all', OBJECTIVE], env).ended

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('streams\n')
    expect(stdout).toContain('written_in_typescript: A library of streams, written in TypeScript.')
    expect(stdout).not.toContain('parser')
    expect(stdout).toContain('1 of 2 candidates match, candidates_exhausted')
  })

  it('sends the beta header of the service by the name in the environment', async () => {
    const env = await scene(['--beta-header', 'other-beta'])
    const refused = await rivulet(['find-all', OBJECTIVE], env).ended
    const { code, stdout } = await rivulet(['find-all', OBJECTIVE], {
      ...env,
      RIVULET_BETA_HEADER: 'other-beta',
    }).ended

    expect(refused.stderr).toContain('other-beta')
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('streams\n') })
  })

  it('prints each event as JSON', async () => {
    const env = await scene()
    const args = ['find-all', OBJECTIVE, '--json', '--generator', 'core', '--limit', '5']
    const { code, stdout } = await rivulet(args, env).ended
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))

    expect(code).toBe(0)
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['findall.candidate.matched', 'findall.candidate.unmatched', 'findall.status']),
    )
    expect(events[0].data.data.generator).toBe('core')
  })

  it('prints what an enrichment found out about each match', async () => {
    const env = await scene()
    const schema = join(await folderOf({}), 'schema.json')
    const language = { type: 'string', description: 'The language that it is written in' }
    await writeFile(schema, JSON.stringify({ type: 'object', properties: { language } }))

    const { code, stdout } = await rivulet(['find-all', 'libraries written in Rust', '--enrich', schema], env)
      .ended

    expect(code).toBe(0)
    expect(stdout.match(/^parser$/gm)).toHaveLength(1)
    expect(stdout).toContain('  language: ')
  })

  it('refuses a limit and a schema that are not valid', async () => {
    const [limit, schema] = await Promise.all([
      rivulet(['find-all', 'x', '--limit', '4']).ended,
      rivulet(['find-all', 'x', '--enrich', 'none.json']).ended,
    ])

    expect([limit.code, schema.code]).toEqual([2, 2])
    expect(limit.stderr).toContain('from 5 to 1000')
  })
})
