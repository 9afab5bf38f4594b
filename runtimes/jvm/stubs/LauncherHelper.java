package sun.launcher;

/** The JDK's own launcher, as far as the gate uses it. Compiled against, not packed. */
public abstract class LauncherHelper {
    public static native Class<?> checkAndLoadMain(boolean toStderr, int mode, String what);
}
