package jdk.internal.misc;

/** What the gate uses of the JDK's own. Compiled against, not packed. */
public abstract class Unsafe {
    public static native Unsafe getUnsafe();

    public abstract long allocateMemory(long bytes);

    public abstract void freeMemory(long address);

    public abstract byte getByte(long address);

    public abstract void putByte(long address, byte value);

    public abstract int getInt(long address);

    public abstract void putInt(long address, int value);

    public abstract long getLong(long address);

    public abstract void putLong(long address, long value);

    public abstract void copyMemory(Object from, long offset, Object to, long at, long bytes);

    public abstract long objectFieldOffset(Class<?> type, String name);

    public abstract long staticFieldOffset(java.lang.reflect.Field field);

    public abstract Object staticFieldBase(java.lang.reflect.Field field);

    public abstract Object getReference(Object of, long offset);

    public abstract void putReference(Object of, long offset, Object value);

    public abstract boolean getBoolean(Object of, long offset);

    public abstract void putBoolean(Object of, long offset, boolean value);

    public abstract boolean shouldBeInitialized(Class<?> type);

    public abstract void ensureClassInitialized(Class<?> type);

    public abstract void throwException(Throwable error);
}
