import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MigrationError, migrate, SCHEMA_VERSION } from '../../src/store/sqlite/migrations.ts'

const version = (db: Database.Database) => db.pragma('user_version', { simple: true })
const tables = (db: Database.Database) =>
  db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`).pluck().all()

describe('migrations', () => {
  it('bring a new database to the newest version, and leave that alone', () => {
    const db = new Database(':memory:')
    migrate(db)
    expect(version(db)).toBe(SCHEMA_VERSION)
    expect(tables(db)).toEqual(['idempotency', 'orders', 'outbox', 'sqlite_sequence'])
    const changes = db.prepare('SELECT total_changes()').pluck().get()
    migrate(db)
    expect(db.prepare('SELECT total_changes()').pluck().get()).toBe(changes)
  })

  it('go on from where the database stands', () => {
    const db = new Database(':memory:')
    migrate(db, ['CREATE TABLE one (x)'])
    migrate(db, ['CREATE TABLE one (x)', 'CREATE TABLE two (x)', 'CREATE TABLE three (x)'])
    expect([version(db), tables(db)]).toEqual([3, ['one', 'three', 'two']])
  })

  it('a step that fails leaves the version before it, whole', () => {
    const db = new Database(':memory:')
    const steps = ['CREATE TABLE one (x)', 'CREATE TABLE two (x); CREATE TABLE one (x)']
    expect(() => migrate(db, steps)).toThrow(/already exists/)
    expect([version(db), tables(db), db.inTransaction]).toEqual([1, ['one'], false])
    migrate(db, [steps[0] ?? '', 'CREATE TABLE two (x)'])
    expect(version(db)).toBe(2)
  })

  it('refuse a newer database and one of another program', () => {
    const newer = new Database(':memory:')
    migrate(newer)
    newer.pragma('user_version = 99')
    expect(() => migrate(newer)).toThrow(MigrationError)
    const foreign = new Database(':memory:')
    foreign.exec('CREATE TABLE theirs (x)')
    expect(() => migrate(foreign)).toThrow('another program')
    expect([version(foreign), tables(foreign)]).toEqual([0, ['theirs']])
  })
})
