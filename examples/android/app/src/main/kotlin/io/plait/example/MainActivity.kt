package io.plait.example

import android.app.Activity
import android.content.res.AssetManager
import android.os.Bundle
import android.widget.ScrollView
import android.widget.TextView
import kotlin.concurrent.thread

class MainActivity : Activity() {
    private external fun run(assets: AssetManager, asset: String, cache: String): String

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        val text = TextView(this).apply { text = "Measuring this phone…"; setTextIsSelectable(true) }
        setContentView(ScrollView(this).apply { addView(text) })
        // Planning takes seconds the first time: not on the main thread. noBackupFilesDir is private and stays on this phone, as measurements must.
        thread {
            val result = run(assets, "model.json", noBackupFilesDir.resolve("plait").path)
            runOnUiThread { text.text = result }
        }
    }

    companion object {
        init { System.loadLibrary("plait_example") }
    }
}
