import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { expect, it } from 'vitest'
import { change } from '../operators/events.ts'
import { append } from '../log/append.ts'
import { scratchFolder } from '../log/sqlite/scratch.ts'

const PROGRAM = `
  import { openLog } from 'rivulet/log'
  import { sqliteStore } from 'rivulet/log/sqlite'
  const [, place] = process.argv
  await openLog(sqliteStore(place)).then(() => console.log('opened'), ({ name, message }) => console.log(name, message))
`

/** Opens the log at the last path in a mount namespace of its own, where the first path is mounted at the second one, with these options. */
function openMounted(from: string, at: string, place: string, options = 'rw') {
  const mounted = `mount --bind "$1" "$2" && mount -o remount,bind,${options} "$2" && shift 2 && exec "$@"`
  const node = [process.execPath, '--conditions=rivulet-source', '--input-type=module', '-e', PROGRAM, place]
  return spawnSync('unshare', ['-Urm', 'sh', '-c', mounted, 'sh', from, at, ...node], { encoding: 'utf8' })
}

it('a log is refused when its file is mounted alone, as with `-v ./log.db:/log.db`, and opened when its folder is', async () => {
  const [folder, elsewhere] = [scratchFolder(), scratchFolder()]
  const store = sqliteStore(join(folder, 'log.db'))
  const log = await openLog(store)
  await append(store, [change('1')])
  await log.close()
  const alone = join(elsewhere, 'mounted alone.db')
  writeFileSync(alone, '')

  const refused = openMounted(join(folder, 'log.db'), alone, alone)
  expect(refused).toMatchObject({ status: 0, stderr: '' })
  expect(refused.stdout).toMatch(/^LogFileError .* is itself mounted here.* folder that has the file/)

  const opened = openMounted(folder, elsewhere, join(elsewhere, 'log.db'))
  expect(opened).toMatchObject({ status: 0, stdout: 'opened\n', stderr: '' })
})

it.each(['log.db', 'new.db'])(
  '%s in a folder that is mounted read-only is an error that says so',
  async (name) => {
    const folder = scratchFolder()
    const log = await openLog(sqliteStore(join(folder, 'log.db')))
    await log.close()
    const refused = openMounted(folder, folder, join(folder, name), 'ro')
    expect(refused).toMatchObject({ status: 0, stderr: '' })
    expect(refused.stdout).toMatch(/^LogFileError .* is mounted read-only: mount its folder for writing/)
  },
)
